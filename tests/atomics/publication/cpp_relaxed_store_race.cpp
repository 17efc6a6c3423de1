// The flag is loaded with acquire order, but nothing is released by its relaxed store.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
// LIMIT nodebug: on x86-64 the wrong order compiles to the same instructions as the right one
#include <atomic>
#include <thread>

#include "race.h"

int value;
static std::atomic<bool> ready;

int main() {
  std::thread taker([] {
    while (!ready.load(std::memory_order_acquire)) usleep(100);
    value = 2;  // [a]
  });
  value = 1;  // [b]
  ready.store(true, std::memory_order::relaxed);
  taker.join();
  return Done();
}
