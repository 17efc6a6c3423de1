// Michael and Scott's queue, whose nodes are never given back.
// CLEAN
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

static Node nodes[8];

int main() {
  const auto give = [](int from) {
    for (int i = from; i < from + 4; i++) {
      nodes[i].value = 1;
      Put(&nodes[i]);
    }
  };
  std::thread first(give, 0), second(give, 4);
  int sum = 0;
  while (sum < 8) {
    if (const Node* const node = Get()) {
      sum += node->value;
    } else {
      usleep(100);
    }
  }
  first.join();
  second.join();
  return Done();
}
