// A write after counting the latch down.
// RACE read-write global:value a b
// MAY-MISS shared: each place runs once
#include <latch>
#include <thread>

#include "race.h"

static std::latch done{1};
int value;

int main() {
  std::thread first([] {
    done.count_down();
    value = 1;  // [a]
  });
  done.wait();
  Use(value);  // [b]
  first.join();
  return Done();
}
