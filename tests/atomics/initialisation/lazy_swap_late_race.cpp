// The winner fills its object in after the swap.
// RACE read-write heap:4 a b
// MAY-MISS shared: each place runs once
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<int*> shared;

int main() {
  std::thread user([] {
    int* object = nullptr;
    while ((object = shared.load(std::memory_order_acquire)) == nullptr) usleep(100);
    Use(*object);  // [a]
  });
  int* const own = new int;
  int* expected = nullptr;
  shared.compare_exchange_strong(expected, own);
  *own = 5;  // [b]
  user.join();
  delete own;
  return Done();
}
