// A sequence lock over plain data: what the reader throws away is a race all the same.
// RACE read-write global:data a b
// TAGS fast
// MAY-MISS shared: each place runs once
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<unsigned> sequence;
static std::atomic<int> reader_id;
int data;

int main() {
  std::thread reader([] {
    reader_id.store(ThreadId());
    for (;;) {
      const unsigned before = sequence.load(std::memory_order_acquire);
      Use(data);  // [a]
      std::atomic_thread_fence(std::memory_order_acquire);
      if (before % 2 == 0 && sequence.load(std::memory_order_relaxed) == before) break;
    }
  });
  while (reader_id.load() == 0) usleep(100);
  WaitUntilEnded(reader_id.load());
  sequence.fetch_add(1, std::memory_order_acq_rel);
  data = 1;  // [b]
  sequence.fetch_add(1, std::memory_order_release);
  reader.join();
  return Done();
}
