// The writer does not wait for readers.
// RACE read-write heap:4 a b
// MAY-MISS shared: each place runs once
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<int*> shared{nullptr};
static std::atomic<int> inside, reader_id;

int main() {
  shared.store(new int(1));
  std::thread reader([] {
    inside.fetch_add(1);
    reader_id.store(ThreadId());
    Use(*shared.load());  // [a]
    inside.fetch_sub(1);
  });
  while (reader_id.load() == 0) usleep(100);
  WaitUntilEnded(reader_id.load());
  delete shared.exchange(nullptr);  // [b]
  reader.join();
  return Done();
}
