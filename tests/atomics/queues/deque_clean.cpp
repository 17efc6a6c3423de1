// Chase and Lev's deque: the owner works at the bottom, a thief at the top.
// CLEAN
// LIMIT clang-O0-nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's
#include <atomic>
#include <thread>

#include "race.h"

struct Item {
  int done = 0;
};
static Item items[8];
static std::atomic<Item*> ring[8];
static std::atomic<long> top, bottom;

static void Push(Item* item) {
  const long at = bottom.load(std::memory_order_relaxed);
  ring[at % 8].store(item, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  bottom.store(at + 1, std::memory_order_relaxed);
}

static Item* Pop() {
  const long at = bottom.load(std::memory_order_relaxed) - 1;
  bottom.store(at, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  long first = top.load(std::memory_order_relaxed);
  Item* item = nullptr;
  if (first <= at) {
    item = ring[at % 8].load(std::memory_order_relaxed);
    if (first != at) return item;
    if (!top.compare_exchange_strong(first, first + 1)) item = nullptr;
  }
  bottom.store(at + 1, std::memory_order_relaxed);
  return item;
}

static Item* Steal() {
  long first = top.load(std::memory_order_acquire);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (first >= bottom.load(std::memory_order_acquire)) return nullptr;
  Item* const item = ring[first % 8].load(std::memory_order_relaxed);
  return top.compare_exchange_strong(first, first + 1) ? item : nullptr;
}

int main() {
  std::thread thief([] {
    for (int i = 0; i < 20; i++) {
      if (Item* const item = Steal()) item->done++;
    }
  });
  for (Item& item : items) {
    item.done = 1;
    Push(&item);
  }
  while (Item* const item = Pop()) item->done++;
  thief.join();
  for (const Item& item : items) Check(item.done == 2);
  return Done();
}
