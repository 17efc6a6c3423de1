// Both threads write after the same phase of a std::barrier.
// RACE write-write global:value a b
// BUILD O0 O2 libcxx
// MAY-MISS shared: each place runs once
#include <barrier>
#include <thread>

#include "race.h"

int value;
std::barrier barrier(2);

int main() {
  std::thread first([] {
    barrier.arrive_and_wait();
    value = 1;  // [a]
  });
  std::thread second([] {
    barrier.arrive_and_wait();
    value = 2;  // [b]
  });
  first.join();
  second.join();
  return Done();
}
