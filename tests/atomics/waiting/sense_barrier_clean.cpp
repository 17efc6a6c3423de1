// A barrier by sense reversal.
// CLEAN
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's
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

static int values[2];

static void Works(int self) {
  bool own = false;
  for (int round = 1; round <= 3; round++) {
    values[self] = round;
    Meet(own);
    Check(values[1 - self] == round);
    Meet(own);
  }
}

int main() {
  std::thread first(Works, 0);
  std::thread second(Works, 1);
  first.join();
  second.join();
  return Done();
}
