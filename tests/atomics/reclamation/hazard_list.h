// Hazard pointers with a list of retired nodes.
#include <atomic>
#include <thread>
#include <vector>

#include "race.h"
#include "run_threads.h"

struct Node {
  long value;
};
using Hazard = std::atomic<Node*>;

static std::atomic<Node*> head;
static Hazard hazards[2];
static std::atomic<int> go;

// The first node, which is not reused until the hazard is cleared.
static Node* Protect(Hazard& hazard) {
  Node* node;
  do {
    node = head.load(std::memory_order_relaxed);
    hazard.store(node, std::memory_order_seq_cst);
  } while (head.load(std::memory_order_seq_cst) != node);
  return node;
}

static void Clear(Hazard& hazard) { hazard.store(nullptr, std::memory_order_release); }

template <typename Reuse>
void Write(Reuse reuse) {
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
      reuse(*at);
      at = retired.erase(at);
    }
  }
}

// Two threads `read` again and again, while others come in place of the first node and it is
// reused.
template <typename Read, typename Reuse>
int RunList(Read read, Reuse reuse) {
  head = new Node{7};
  const auto reader = [=](int me) {
    go.fetch_add(1, std::memory_order_relaxed);
    for (int i = 0; i < 30; i++) read(hazards[me]);
  };
  RunThreads([=] { reader(0); }, [=] { reader(1); }, [=] { Write(reuse); });
  return Done();
}
