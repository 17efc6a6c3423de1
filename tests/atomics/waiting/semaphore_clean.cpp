// std::counting_semaphore hands values over.
// CLEAN
#include <semaphore>
#include <thread>

#include "race.h"

static std::counting_semaphore<8> filled{0};
static int values[3];

int main() {
  std::thread giver([] {
    for (int i = 0; i < 3; i++) {
      values[i] = i;
      filled.release();
    }
  });
  int sum = 0;
  for (int i = 0; i < 3; i++) {
    filled.acquire();
    sum += values[i];
  }
  giver.join();
  return sum == 3 ? Done() : 1;
}
