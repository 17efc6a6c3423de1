// A latch after Linux's seqcount_latch: two copies, the sequence says which is stable.
#include <atomic>

#include "race.h"
#include "run_threads.h"

struct Data {
  std::atomic<long> a, b;
};
static std::atomic<unsigned> sequence;
static Data copies[2];

static void Write(long value) {
  sequence.fetch_add(1, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  copies[0].a.store(value, std::memory_order_relaxed);
  copies[0].b.store(-value, std::memory_order_relaxed);
  sequence.fetch_add(1, std::memory_order_seq_cst);
  copies[1].a.store(value, std::memory_order_relaxed);
  copies[1].b.store(-value, std::memory_order_relaxed);
}

static long Read() {
  for (;;) {
    const unsigned seen = sequence.load(std::memory_order_acquire);
    const Data& data = copies[seen & 1];
    const long a = data.a.load(std::memory_order_relaxed),
               b = data.b.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (sequence.load(std::memory_order_relaxed) != seen) continue;
    Check(a == -b);
    return a;
  }
}

// One thread writes by `write`, which is given the value, another one reads by `read`.
template <typename Writer, typename Reader>
int RunLatch(Writer write, Reader read) {
  RunThreads(
      [=] {
        for (int i = 0; i < 40; i++) write(i);
      },
      [=] {
        for (int i = 0; i < 40; i++) read();
      });
  return Done();
}
