// The release fence comes after the store that it should come before.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
// LIMIT nodebug: on x86-64 the wrong order compiles to the same instructions as the right one
#include <atomic>
#include <thread>

#include "race.h"

int value;
static std::atomic<bool> ready;

static void Publish() {
  ready.store(true, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
}

int main() {
  std::thread giver([] {
    value = 1;  // [a]
    Publish();
  });
  std::thread taker([] {
    while (!ready.load(std::memory_order_acquire)) usleep(100);
    value = 2;  // [b]
  });
  giver.join();
  taker.join();
  return Done();
}
