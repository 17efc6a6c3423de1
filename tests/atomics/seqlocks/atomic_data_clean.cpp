// A sequence lock whose data are relaxed atomics between fences.
// CLEAN
// LIMIT clang-O0-nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<unsigned> sequence;
static std::atomic<int> first, second;

static void Write(int value) {
  const unsigned before = sequence.load(std::memory_order_relaxed);
  sequence.store(before + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  first.store(value, std::memory_order_relaxed);
  second.store(value, std::memory_order_relaxed);
  sequence.store(before + 2, std::memory_order_release);
}

static bool Read() {
  for (;;) {
    const unsigned before = sequence.load(std::memory_order_acquire);
    const int a = first.load(std::memory_order_relaxed);
    const int b = second.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 == 0 && sequence.load(std::memory_order_relaxed) == before) return a == b;
    usleep(100);
  }
}

int main() {
  std::thread reader([] {
    for (int i = 0; i < 5; i++) Check(Read());
  });
  for (int i = 0; i < 5; i++) Write(i);
  reader.join();
  return Done();
}
