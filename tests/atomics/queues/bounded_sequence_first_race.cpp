// The cell's number says that it is filled before it is.
// RACE read-write - a b
// MAY-MISS shared: each place runs once
// LIMIT O2-nodebug: who waits comes after all that the other thread has done meanwhile, as long as its store is not known for what it is
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's: the number is reported besides
#include <atomic>
#include <thread>

#include "race.h"

struct Cell {
  std::atomic<unsigned> sequence;
  int value;
};
static Cell cells[4];
static std::atomic<unsigned> enqueued, dequeued;

int main() {
  std::thread taker([] {
    while (cells[0].sequence.load(std::memory_order_acquire) != 1) usleep(100);
    dequeued.fetch_add(1, std::memory_order_relaxed);
    Use(cells[0].value);  // [a]
  });
  enqueued.fetch_add(1, std::memory_order_relaxed);
  cells[0].sequence.store(1, std::memory_order_release);
  cells[0].value = 1;  // [b]
  taker.join();
  return Done();
}
