// Relaxed accesses to the flag order nothing; on x86-64 the instructions are the same.
// RACE write-write global:value a b
// MAY-MISS exact: a mov does not tell its memory order
// MAY-MISS shared: a mov does not tell its memory order
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
