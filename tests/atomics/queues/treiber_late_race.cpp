// A node of a stack is filled in after it was pushed.
// RACE read-write heap:16 a b
// MAY-MISS shared: each place runs once
#include <atomic>
#include <thread>

#include "race.h"

struct Node {
  Node* next;
  int value;
};
static std::atomic<Node*> top;

int main() {
  std::thread giver([] {
    Node* const node = new Node{top.load(std::memory_order_relaxed), 0};
    while (!top.compare_exchange_weak(node->next, node, std::memory_order_release)) {
    }
    node->value = 1;  // [a]
  });
  Node* node = nullptr;
  while ((node = top.exchange(nullptr, std::memory_order_acquire)) == nullptr) usleep(100);
  Use(node->value);  // [b]
  giver.join();
  delete node;
  return Done();
}
