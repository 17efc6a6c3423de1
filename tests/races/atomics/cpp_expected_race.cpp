// The `expected` argument of a compare_exchange is memory like any other: read always, written when
// the exchange fails, by plain instructions.
// RACE read-write global:expected a b
// RACE write-write global:failed c d
// MAY-MISS shared: each place runs once
#include <atomic>
#include <thread>

#include "race.h"

std::atomic<int> one{5}, other{5};
int expected = 5;
int failed;

int main() {
  // Either may come first: the exchange of `one` succeeds with what `expected` has or fails.
  std::thread thread([] {
    one.compare_exchange_strong(expected, 1);                           // [a]
    other.compare_exchange_weak(failed, 1, std::memory_order_relaxed);  // [c]
  });
  expected = 4;  // [b]
  failed = 3;    // [d]
  thread.join();
  return Done();
}
