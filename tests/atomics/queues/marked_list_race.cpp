// A sorted list after Harris, with marked pointers; nodes are not given back.
// RACE any - a b
// MAY-MISS shared: who had the page first did so alone
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include <atomic>
#include <cstdint>
#include <thread>

#include "race.h"

struct Node {
  int key;
  long payload;
  std::atomic<uintptr_t> next{0};
};

static Node tail{1 << 30, 0, {}}, head{-1, 0, {reinterpret_cast<uintptr_t>(&tail)}};

static Node* To(uintptr_t word) { return reinterpret_cast<Node*>(word & ~uintptr_t{1}); }

static Node* Find(int key, Node** left) {
again:
  Node* before = &head;
  Node* at = To(before->next.load(std::memory_order_acquire));
  for (;;) {
    uintptr_t next = at->next.load(std::memory_order_acquire);
    while (next & 1) {
      uintptr_t expected = reinterpret_cast<uintptr_t>(at);
      if (!before->next.compare_exchange_strong(expected, next & ~uintptr_t{1},
                                                std::memory_order_acq_rel))
        goto again;
      at = To(next);
      next = at->next.load(std::memory_order_acquire);
    }
    if (at->key >= key) {
      *left = before;
      return at;
    }
    before = at;
    at = To(next);
  }
}

static void Insert(int key) {
  Node* const node = new Node;
  node->key = key;
  for (;;) {
    Node* left;
    Node* const right = Find(key, &left);
    node->next.store(reinterpret_cast<uintptr_t>(right), std::memory_order_relaxed);
    uintptr_t expected = reinterpret_cast<uintptr_t>(right);
    if (left->next.compare_exchange_strong(expected, reinterpret_cast<uintptr_t>(node),
                                           std::memory_order_release, std::memory_order_relaxed))
      break;
  }
  node->payload = key * 2;  // [a]
}

static long Remove(int key) {
  for (;;) {
    Node* left;
    Node* const node = Find(key, &left);
    if (node->key != key) {
      std::this_thread::yield();
      continue;
    }
    uintptr_t next = node->next.load(std::memory_order_acquire);
    if (next & 1) continue;
    if (!node->next.compare_exchange_strong(next, next | 1, std::memory_order_acq_rel)) continue;
    const long payload = node->payload;  // [b]
    Find(key, &left);
    return payload;
  }
}

int main() {
  std::thread a([] {
    for (int i = 0; i < 12; i++) Insert(i * 7 % 12);
  });
  std::thread b([] {
    for (int i = 0; i < 12; i++) Use(Remove(i));
  });
  a.join();
  b.join();
  return Done();
}
