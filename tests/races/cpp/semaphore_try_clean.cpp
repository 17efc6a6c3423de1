// counting_semaphore: try_acquire, try_acquire_for; binary_semaphore as a lock.
// CLEAN
#include <semaphore>
#include <thread>

#include "race.h"

int value, counter;
std::counting_semaphore<4> permits(0);
std::binary_semaphore free_to_count(1);

void Count() {
  free_to_count.acquire();
  counter++;
  free_to_count.release();
}

int main() {
  std::thread worker([] {
    while (!permits.try_acquire()) usleep(1000);
    while (!permits.try_acquire_for(std::chrono::seconds(1))) {
    }
    value++;
    Count();
  });
  value = 1;
  permits.release(2);
  Count();
  worker.join();
  return value == 2 && counter == 2 ? Done() : 1;
}
