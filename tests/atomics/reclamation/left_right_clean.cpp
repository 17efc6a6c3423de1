// Left-right: two instances, readers count themselves in, the writer waits for them.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

static long data[2];
static std::atomic<int> side{0}, version{0};
static std::atomic<long> readers[2];

static void Read() {
  for (int i = 0; i < 40; i++) {
    const int mine = version.load();
    readers[mine].fetch_add(1);
    const int at = side.load();
    Use(data[at]);
    readers[mine].fetch_sub(1);
  }
}

static void Write(long value) {
  const int at = side.load(std::memory_order_relaxed);
  data[1 - at] = value;
  side.store(1 - at);
  const int old = version.load();
  while (readers[1 - old].load() != 0) std::this_thread::yield();
  version.store(1 - old);
  while (readers[old].load() != 0) std::this_thread::yield();
  data[at] = value;
}

int main() {
  std::thread a(Read), b(Read), c([] {
    for (int i = 0; i < 6; i++) Write(i);
  });
  a.join();
  b.join();
  c.join();
  return Done();
}
