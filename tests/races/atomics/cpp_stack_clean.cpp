// Treiber's stack: nodes handed over by compare-and-swap.
// CLEAN
#include <atomic>
#include <thread>
#include <utility>

#include "race.h"

struct Node {
  int value;
  Node* next;
};
std::atomic<Node*> top;

static void Push(int value) {
  Node* node = new Node{value, top.load(std::memory_order_relaxed)};
  while (!top.compare_exchange_weak(node->next, node, std::memory_order_release,
                                    std::memory_order_relaxed)) {
  }
}

int main() {
  std::thread first([] { Push(1); });
  std::thread second([] { Push(2); });
  int sum = 0;
  while (sum != 3) {
    Node* node = top.exchange(nullptr, std::memory_order_acquire);
    while (node != nullptr) {
      sum += node->value;
      delete std::exchange(node, node->next);
    }
    usleep(1000);
  }
  first.join();
  second.join();
  return Done();
}
