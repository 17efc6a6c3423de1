// A triple buffer: writer and reader exchange indices in one word.
// CLEAN
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include <atomic>
#include <thread>

#include "race.h"

struct Frame {
  long data[8];
};
Frame buffers[3];
static std::atomic<unsigned> middle{1};
static std::atomic<bool> stop;

int main() {
  std::thread writer([] {
    unsigned mine = 0;
    for (int i = 0; i < 40; i++) {
      for (long& cell : buffers[mine].data) cell = i;
      mine = middle.exchange(mine | 4, std::memory_order_acq_rel) & 3;
    }
    stop.store(true, std::memory_order_release);
  });
  std::thread reader([] {
    unsigned mine = 2;
    for (bool last = false; !last;) {
      last = stop.load(std::memory_order_acquire);
      if (!(middle.load(std::memory_order_relaxed) & 4)) continue;
      mine = middle.exchange(mine, std::memory_order_acq_rel) & 3;
      for (long cell : buffers[mine].data) Use(cell);
    }
  });
  writer.join();
  reader.join();
  return Done();
}
