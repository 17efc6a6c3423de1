// Epochs: objects are freed two epochs after they were unlinked.
// CLEAN
#include <atomic>
#include <thread>
#include <vector>

#include "race.h"

struct Node {
  long value;
};
static std::atomic<Node*> root;
static std::atomic<unsigned> global_epoch{2};
struct alignas(64) Local {
  std::atomic<unsigned> epoch{0};
};
static Local locals[2];
static std::atomic<int> ended;

static void Read(int me) {
  for (int i = 0; i < 30; i++) {
    locals[me].epoch.store(global_epoch.load(), std::memory_order_seq_cst);
    Node* const node = root.load(std::memory_order_acquire);
    Use(node->value);
    locals[me].epoch.store(0, std::memory_order_release);
  }
  ended.fetch_add(1, std::memory_order_release);
}

static bool Advance() {
  const unsigned now = global_epoch.load();
  for (auto& local : locals) {
    const unsigned epoch = local.epoch.load(std::memory_order_seq_cst);
    if (epoch != 0 && epoch != now) return false;
  }
  global_epoch.store(now + 1);
  return true;
}

int main() {
  root = new Node{1};
  std::thread a(Read, 0), b(Read, 1);
  for (int i = 0; i < 8; i++) {
    Node* const old = root.exchange(new Node{i}, std::memory_order_acq_rel);
    for (int steps = 0; steps < 2;) {
      if (Advance())
        steps++;
      else
        std::this_thread::yield();
    }
    delete old;
    usleep(200);
  }
  a.join();
  b.join();
  delete root.load();
  return Done();
}
