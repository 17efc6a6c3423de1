// The jthread is still running while its creator writes.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <thread>

#include "race.h"

int value;

int main() {
  {
    const std::jthread thread([] {
      value = 1;  // [a]
    });
    value = 2;  // [b]
  }
  return Done();
}
