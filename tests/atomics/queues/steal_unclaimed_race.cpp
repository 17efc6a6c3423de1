// The thief works on an item that it has not claimed, and so does the owner.
// RACE write-write - a b
// MAY-MISS shared: each place runs once
// LIMIT O2-nodebug: who waits comes after all that the other thread has done meanwhile, as long as its store is not known for what it is
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's: the bottom is reported besides
#include <atomic>
#include <thread>

#include "race.h"

struct Item {
  int done = 0;
};
static Item item;
static std::atomic<Item*> ring[8];
static std::atomic<long> bottom;

int main() {
  std::thread thief([] {
    while (bottom.load(std::memory_order_acquire) == 0) usleep(100);
    ring[0].load(std::memory_order_relaxed)->done = 1;  // [a]
  });
  ring[0].store(&item, std::memory_order_relaxed);
  bottom.store(1, std::memory_order_release);
  item.done = 2;  // [b]
  thief.join();
  return Done();
}
