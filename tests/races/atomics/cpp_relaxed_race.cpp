// Relaxed accesses to the flag order nothing; on x86-64 the instructions are the same.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <atomic>
#include <thread>

#include "race.h"

int value;
std::atomic<bool> ready;

int main() {
  std::thread receiver([] {
    while (!ready.load(std::memory_order_relaxed)) usleep(1000);
    value = 1;  // [a]
  });
  value = 2;  // [b]
  ready.store(true, std::memory_order_relaxed);
  receiver.join();
  return Done();
}
