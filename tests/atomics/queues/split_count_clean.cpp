// A stack with split reference counts: pointer and count in one word of 16 bytes.
// CLEAN
// FLAGS -mcx16 -Wno-unknown-warning-option -Wno-atomic-alignment
// LINK -latomic
#include <atomic>
#include <thread>
#include <vector>

#include "race.h"

struct Node;
struct alignas(16) Counted {
  long external;
  Node* node;
};
struct Node {
  long value;
  std::atomic<long> internal{0};
  Counted next{0, nullptr};
};
static std::atomic<Counted> head{Counted{0, nullptr}};

static void Push(long value) {
  Node* const node = new Node;
  node->value = value;
  Counted fresh{1, node};
  node->next = head.load(std::memory_order_relaxed);
  while (!head.compare_exchange_weak(node->next, fresh, std::memory_order_release,
                                     std::memory_order_relaxed)) {
  }
}

static bool Pop(long* value) {
  Counted old = head.load(std::memory_order_relaxed);
  for (;;) {
    Counted mine;
    do {
      mine = old;
      mine.external++;
    } while (!head.compare_exchange_strong(old, mine, std::memory_order_acquire,
                                           std::memory_order_relaxed));
    old = mine;
    Node* const node = old.node;
    if (!node) return false;
    if (head.compare_exchange_strong(old, node->next, std::memory_order_relaxed)) {
      *value = node->value;
      const long by = mine.external - 2;
      if (node->internal.fetch_add(by, std::memory_order_release) == -by) {
        node->internal.load(std::memory_order_acquire);
        delete node;
      }
      return true;
    }
    if (node->internal.fetch_add(-1, std::memory_order_relaxed) == 1) {
      node->internal.load(std::memory_order_acquire);
      delete node;
    }
  }
}

int main() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; i++)
    threads.emplace_back([] {
      for (int i = 0; i < 10; i++) Push(i);
    });
  for (int i = 0; i < 2; i++) {
    threads.emplace_back([] {
      long value;
      for (int i = 0; i < 10; i++) {
        while (!Pop(&value)) std::this_thread::yield();
        Use(value);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return Done();
}
