// std::latch: what came before count_down is ordered before what comes after wait.
// CLEAN
#include <latch>
#include <thread>

#include "race.h"

int values[2];
std::latch latch(2);

int main() {
  std::thread first([] {
    values[0] = 1;
    latch.count_down();
  });
  std::thread second([] {
    values[1] = 1;
    latch.count_down();
  });
  latch.wait();
  const int sum = values[0] + values[1];
  values[0] = 0;
  first.join();
  second.join();
  return sum == 2 ? Done() : 1;
}
