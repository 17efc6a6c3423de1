// Two threads assign to the same element of a std::vector.
// RACE write-write heap:16 a b
// MAY-MISS shared: each place runs once
// BUILD O0 O2
#include <thread>
#include <vector>

#include "race.h"

int main() {
  std::vector<int> values(4);
  int* element = &values[2];
  std::thread first([element] {
    *element = 1;  // [a]
  });
  std::thread second([element] {
    *element = 2;  // [b]
  });
  first.join();
  second.join();
  return Done();
}
