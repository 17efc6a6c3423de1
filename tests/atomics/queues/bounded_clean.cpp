// A bounded queue for many givers and takers: a sequence number in every cell.
// CLEAN
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's
#include <atomic>
#include <thread>

#include "race.h"

struct Cell {
  std::atomic<unsigned> sequence;
  int value;
};
static Cell cells[4];
static std::atomic<unsigned> enqueued, dequeued;

static void Put(int value) {
  for (;;) {
    unsigned at = enqueued.load(std::memory_order_relaxed);
    Cell& cell = cells[at % 4];
    const unsigned sequence = cell.sequence.load(std::memory_order_acquire);
    if (sequence == at && enqueued.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
      cell.value = value;
      cell.sequence.store(at + 1, std::memory_order_release);
      return;
    }
    usleep(100);
  }
}

static int Get() {
  for (;;) {
    unsigned at = dequeued.load(std::memory_order_relaxed);
    Cell& cell = cells[at % 4];
    const unsigned sequence = cell.sequence.load(std::memory_order_acquire);
    if (sequence == at + 1 &&
        dequeued.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
      const int value = cell.value;
      cell.sequence.store(at + 4, std::memory_order_release);
      return value;
    }
    usleep(100);
  }
}

int main() {
  for (unsigned i = 0; i < 4; i++) cells[i].sequence.store(i);
  const auto give = [] {
    for (int i = 0; i < 5; i++) Put(1);
  };
  std::thread first(give), second(give);
  int sum = 0;
  for (int i = 0; i < 10; i++) sum += Get();
  first.join();
  second.join();
  return sum == 10 ? Done() : 1;
}
