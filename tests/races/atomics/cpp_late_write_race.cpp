// The value is written after the flag is set.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <atomic>
#include <thread>

#include "race.h"

int value;
std::atomic<bool> ready;

int main() {
  std::thread receiver([] {
    while (!ready.load(std::memory_order_acquire)) usleep(1000);
    value = 1;  // [a]
  });
  ready.store(true, std::memory_order_release);
  value = 2;  // [b]
  receiver.join();
  return Done();
}
