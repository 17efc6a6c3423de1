// The reader waits for the other of two flags.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
// LIMIT O2-nodebug: who waits comes after all that the other thread has done meanwhile, as long as its store is not known for what it is
#include <atomic>
#include <thread>

#include "race.h"

int value;
static std::atomic<bool> started, finished;

int main() {
  std::thread reader([] {
    while (!started.load(std::memory_order_acquire)) usleep(100);
    value = 2;  // [a]
  });
  started.store(true, std::memory_order_release);
  value = 1;  // [b]
  finished.store(true, std::memory_order_release);
  reader.join();
  return Done();
}
