// A node is filled in after it was linked.
// RACE read-write global:node a b
// MAY-MISS shared: each place runs once
#include <atomic>
#include <thread>

#include "race.h"

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

static Node node;

int main() {
  std::thread giver([] {
    Put(&node);
    node.value = 1;  // [a]
  });
  Node* taken = nullptr;
  while ((taken = Get()) == nullptr) usleep(100);
  Use(taken->value);  // [b]
  giver.join();
  return Done();
}
