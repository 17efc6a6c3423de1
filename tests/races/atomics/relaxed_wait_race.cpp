// A flag that is waited for by relaxed loads orders nothing, whichever library's atomics it is.
// RACE read-write global:value a b
// BUILD O0 O2 libcxx
// MAY-MISS shared: each place runs once
#include <unistd.h>

#include <atomic>
#include <thread>

#include "race.h"

int value;
static std::atomic<bool> ready;

int main() {
  std::thread waiter([] {
    while (!ready.load(std::memory_order_relaxed)) usleep(100);
    Use(value);  // [a]
  });
  value = 1;  // [b]
  ready.store(true, std::memory_order_release);
  waiter.join();
  return Done();
}
