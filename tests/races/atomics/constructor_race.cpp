// To make an atomic object is no atomic operation on it: who gets it by a relaxed load races.
// RACE atomic-plain heap a b
// ALSO any a b
// BUILD O0 O2 clang-O2
#include <atomic>

#include "run_to_end.h"

struct Counter {
  std::atomic<int> value;
  explicit Counter(int start) : value(start) {}  // [a]
};

static std::atomic<Counter*> counter{nullptr};

static void* Makes(void* argument) {
  counter.store(new Counter(5), std::memory_order_relaxed);
  return argument;
}

int main() {
  const pthread_t idle = StartIdle();
  const pthread_t makes = RunToEnd(Makes, nullptr);
  const int before = counter.load(std::memory_order_relaxed)
                         ->value.fetch_add(1, std::memory_order_relaxed);  // [b]
  EndIdle(idle);
  Join(makes);
  return before == 5 ? 0 : 1;
}
