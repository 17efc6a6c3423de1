// Both threads write between two phases of a std::barrier.
// RACE write-write global:value a b
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
    barrier.arrive_and_wait();
  });
  std::thread second([] {
    barrier.arrive_and_wait();
    value = 2;  // [b]
    barrier.arrive_and_wait();
  });
  first.join();
  second.join();
  return Done();
}
