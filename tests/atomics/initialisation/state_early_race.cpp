// The state says that all is there before it is.
// RACE read-write global:value a b
// MAY-MISS shared: each place runs once
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<int> state;
int value;

int main() {
  std::thread user([] {
    while (state.load(std::memory_order_acquire) != 2) usleep(100);
    Use(value);  // [a]
  });
  int expected = 0;
  state.compare_exchange_strong(expected, 1);
  state.exchange(2);
  value = 7;  // [b]
  user.join();
  return Done();
}
