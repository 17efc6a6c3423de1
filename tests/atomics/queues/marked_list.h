// A sorted list after Harris, with marked pointers; nodes are not given back.
#include <atomic>
#include <cstdint>
#include <thread>

#include "race.h"
#include "run_threads.h"

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

static void Insert(Node* node) {
  for (;;) {
    Node* left;
    Node* const right = Find(node->key, &left);
    node->next.store(reinterpret_cast<uintptr_t>(right), std::memory_order_relaxed);
    uintptr_t expected = reinterpret_cast<uintptr_t>(right);
    if (left->next.compare_exchange_strong(expected, reinterpret_cast<uintptr_t>(node),
                                           std::memory_order_release, std::memory_order_relaxed))
      break;
  }
}

// Waits for a node with the key.
static Node* Remove(int key) {
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
    Find(key, &left);
    return node;
  }
}

// `give` fills new nodes in and inserts them, `take` uses those that were removed.
template <typename Give, typename Take>
int RunList(Give give, Take take) {
  RunThreads(
      [=] {
        for (int i = 0; i < 12; i++) {
          Node* const node = new Node;
          node->key = i * 7 % 12;
          give(node);
        }
      },
      [=] {
        for (int i = 0; i < 12; i++) take(Remove(i));
      });
  return Done();
}
