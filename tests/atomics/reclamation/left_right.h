// Left-right: two instances, readers count themselves in, the writer waits for them.
#include <atomic>
#include <thread>

#include "race.h"
#include "run_threads.h"

static long data[2];
static std::atomic<int> side{0}, version{0};
static std::atomic<long> readers[2];

// What to leave by.
static std::atomic<long>& Enter() {
  std::atomic<long>& mine = readers[version.load()];
  mine.fetch_add(1);
  return mine;
}

static void Leave(std::atomic<long>& mine) { mine.fetch_sub(1); }

// change(instance) is called for one after the other, when nobody reads it.
template <typename Change>
void Write(Change change) {
  const int at = side.load(std::memory_order_relaxed);
  change(data[1 - at]);
  side.store(1 - at);
  const int old = version.load();
  while (readers[1 - old].load() != 0) std::this_thread::yield();
  version.store(1 - old);
  while (readers[old].load() != 0) std::this_thread::yield();
  change(data[at]);
}

// Two threads `read` again and again, another one writes.
template <typename Read, typename Change>
int RunReaders(Read read, Change change) {
  const auto reader = [=] {
    for (int i = 0; i < 40; i++) read();
  };
  RunThreads(reader, reader, [=] {
    for (int i = 0; i < 6; i++) Write(change);
  });
  return Done();
}
