// std::counting_semaphore and std::binary_semaphore hand over.
// CLEAN
#include <semaphore>
#include <thread>

#include "race.h"

int value;
std::counting_semaphore<4> there(0);
std::binary_semaphore back(0);

int main() {
  std::thread other([] {
    there.acquire();
    value++;
    back.release();
  });
  value = 1;
  there.release();
  back.acquire();
  value++;
  other.join();
  return value == 3 ? Done() : 1;
}
