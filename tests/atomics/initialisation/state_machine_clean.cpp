// Who turns the state from 0 to 1 initialises; the others wait for 2.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<int> state;
static int value;

static int Value() {
  int expected = 0;
  if (state.compare_exchange_strong(expected, 1)) {
    value = 7;
    state.store(2, std::memory_order_release);
  } else {
    while (state.load(std::memory_order_acquire) != 2) usleep(100);
  }
  return value;
}

int main() {
  std::thread first([] { Check(Value() == 7); });
  std::thread second([] { Check(Value() == 7); });
  first.join();
  second.join();
  return Done();
}
