// Hazard pointers with a list of retired nodes.
// RACE any - r w
// MAY-MISS shared: who had the page first did so alone
#include <atomic>
#include <thread>
#include <vector>

#include "race.h"

struct Node {
  long value;
};
static std::atomic<Node*> head;
static std::atomic<Node*> hazards[2];
static std::atomic<int> go;

static void Read(int me) {
  go.fetch_add(1, std::memory_order_relaxed);
  for (int i = 0; i < 30; i++) {
    Node* node;
    do {
      node = head.load(std::memory_order_relaxed);
      hazards[me].store(node, std::memory_order_seq_cst);
    } while (head.load(std::memory_order_seq_cst) != node);
    hazards[me].store(nullptr, std::memory_order_release);
    Use(node->value);  // [r]
  }
}

static void Write() {
  std::vector<Node*> retired;
  while (go.load(std::memory_order_relaxed) < 2) std::this_thread::yield();
  for (int i = 0; i < 20; i++) {
    Node* const fresh = new Node{i};
    retired.push_back(head.exchange(fresh, std::memory_order_seq_cst));
    for (auto at = retired.begin(); at != retired.end();) {
      bool used = false;
      for (auto& hazard : hazards) used |= hazard.load(std::memory_order_seq_cst) == *at;
      if (used) {
        ++at;
        continue;
      }
      (*at)->value = -1;  // [w]
      at = retired.erase(at);
    }
  }
}

int main() {
  head = new Node{7};
  std::thread a(Read, 0), b(Read, 1), c(Write);
  a.join();
  b.join();
  c.join();
  return Done();
}
