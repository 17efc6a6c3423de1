// The thread counts the latch down before it has written.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <latch>
#include <thread>

#include "race.h"

int value;
std::latch latch(1);

int main() {
  std::thread first([] {
    latch.count_down();
    value = 1;  // [a]
  });
  latch.wait();
  value = 2;  // [b]
  first.join();
  return Done();
}
