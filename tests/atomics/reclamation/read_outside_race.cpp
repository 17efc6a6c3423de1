// A reader goes on reading after it has said that it is out.
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
    int* const object = shared.load();
    reader_id.store(ThreadId());
    inside.fetch_sub(1);
    Use(*object);  // [a]
  });
  while (reader_id.load() == 0) usleep(100);
  WaitUntilEnded(reader_id.load());
  int* const old = shared.exchange(nullptr);
  while (inside.load() != 0) usleep(100);
  delete old;  // [b]
  reader.join();
  return Done();
}
