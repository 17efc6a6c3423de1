// Fences around a plain flag are not enough: the flag itself races.
// RACE read-write global:ready a b
// ALSO any c d
// MAY-MISS shared: each place runs once in a thread
// LIMIT nodebug: a loop that does nothing else waits for it, as for an atomic one; the instructions are the same
#include <atomic>
#include <thread>

#include "race.h"

int value;
static volatile bool ready;

int main() {
  std::thread taker([] {
    while (!ready) usleep(100);  // [a]
    std::atomic_thread_fence(std::memory_order_acquire);
    value = 2;  // [c]
  });
  value = 1;  // [d]
  std::atomic_thread_fence(std::memory_order_release);
  ready = true;  // [b]
  taker.join();
  return Done();
}
