// The object is deleted without a look at the hazard pointer.
// RACE read-write heap:4 a b
// MAY-MISS shared: each place runs once
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<int*> shared{nullptr};
static std::atomic<int*> hazard;
static std::atomic<int> reader_id;

int main() {
  shared.store(new int(1));
  std::thread reader([] {
    int* const object = shared.load();
    hazard.store(object);
    reader_id.store(ThreadId());
    Use(*object);  // [a]
  });
  while (reader_id.load() == 0) usleep(100);
  WaitUntilEnded(reader_id.load());
  int* const old = shared.exchange(nullptr);
  delete old;  // [b]
  reader.join();
  return Done();
}
