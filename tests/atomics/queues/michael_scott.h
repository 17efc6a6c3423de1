// Michael and Scott's queue, whose nodes are never given back.
#include <atomic>

#include "race.h"
#include "run_threads.h"

struct Node {
  int value = 0;
  std::atomic<Node*> next{nullptr};
};
static Node dummy;
static std::atomic<Node*> head{&dummy}, tail{&dummy};

static void Put(Node* node) {
  for (;;) {
    Node* last = tail.load(std::memory_order_acquire);
    Node* next = last->next.load(std::memory_order_acquire);
    if (next != nullptr) {
      tail.compare_exchange_weak(last, next);
    } else if (last->next.compare_exchange_weak(next, node, std::memory_order_release)) {
      tail.compare_exchange_strong(last, node);
      return;
    }
  }
}

static Node* Get() {
  for (;;) {
    Node* first = head.load(std::memory_order_acquire);
    Node* last = tail.load(std::memory_order_acquire);
    Node* next = first->next.load(std::memory_order_acquire);
    if (next == nullptr) return nullptr;
    if (first == last) {
      tail.compare_exchange_weak(last, next);
    } else if (head.compare_exchange_weak(first, next, std::memory_order_acq_rel)) {
      return next;
    }
  }
}
