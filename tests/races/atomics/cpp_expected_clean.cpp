// A stack whose push has the next node's pointer for `expected`: what a failed exchange stores
// there is the pusher's own until the node can be seen.
// CLEAN
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "race.h"

struct Node {
  int value;
  Node* next;
};
std::atomic<Node*> top{nullptr};

void Push(int value) {
  Node* const node = new Node{value, top.load(std::memory_order_relaxed)};
  while (!top.compare_exchange_weak(node->next, node, std::memory_order_release,
                                    std::memory_order_relaxed)) {
  }
}

int main() {
  constexpr int kThreads = 3, kEach = 300;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([] {
      for (int value = 0; value < kEach; ++value) Push(value);
    });
  }
  for (int seen = 0; seen < kThreads * kEach;) {
    Node* node = top.exchange(nullptr, std::memory_order_acquire);
    while (node != nullptr) {
      Check(node->value < kEach);
      delete std::exchange(node, node->next);
      ++seen;
    }
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  return Done();
}
