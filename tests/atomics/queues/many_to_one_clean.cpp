// An intrusive queue for many givers and one taker: linked by an exchange, then by a store.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

struct Node {
  std::atomic<Node*> next{nullptr};
  int value = 0;
};
static Node dummy;
static std::atomic<Node*> tail{&dummy};
static Node nodes[6];

static void Put(Node* node) {
  Node* const before = tail.exchange(node, std::memory_order_acq_rel);
  before->next.store(node, std::memory_order_release);
}

int main() {
  const auto give = [](int from) {
    for (int i = from; i < from + 3; i++) {
      nodes[i].value = 1;
      Put(&nodes[i]);
    }
  };
  std::thread first(give, 0), second(give, 3);
  int sum = 0;
  for (Node* at = &dummy; sum < 6;) {
    Node* const next = at->next.load(std::memory_order_acquire);
    if (next == nullptr) {
      usleep(100);
      continue;
    }
    sum += next->value;
    at = next;
  }
  first.join();
  second.join();
  return Done();
}
