// std::counting_semaphore released too early.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <semaphore>
#include <thread>

#include "race.h"

int value;
std::counting_semaphore<4> ready(0);

int main() {
  std::thread other([] {
    ready.acquire();
    value = 1;  // [a]
  });
  ready.release();
  value = 2;  // [b]
  other.join();
  return Done();
}
