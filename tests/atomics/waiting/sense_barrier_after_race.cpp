// A barrier by sense reversal, and a write of both threads after it.
// RACE write-write global:value a a
// MAY-MISS shared: each place runs once in a thread
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's: the barrier is reported besides
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<int> arrived;
static std::atomic<bool> sense;

static void Meet(bool& own) {
  own = !own;
  if (arrived.fetch_add(1, std::memory_order_acq_rel) == 1) {
    arrived.store(0, std::memory_order_relaxed);
    sense.store(own, std::memory_order_release);
  } else {
    while (sense.load(std::memory_order_acquire) != own) usleep(100);
  }
}

int value;

static void Works() {
  bool own = false;
  Meet(own);
  value = 1;  // [a]
}

int main() {
  std::thread first(Works);
  std::thread second(Works);
  first.join();
  second.join();
  return Done();
}
