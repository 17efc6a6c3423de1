// Epochs: objects are freed two epochs after they were unlinked.
#include <atomic>
#include <thread>

#include "race.h"
#include "run_threads.h"

struct Node {
  long value;
};
static std::atomic<Node*> root;
static std::atomic<unsigned> global_epoch{2};
struct alignas(64) Local {
  std::atomic<unsigned> epoch{0};
};
static Local locals[2];

static void Enter(Local& local) {
  local.epoch.store(global_epoch.load(), std::memory_order_seq_cst);
}

static void Leave(Local& local) { local.epoch.store(0, std::memory_order_release); }

static bool Advance() {
  const unsigned now = global_epoch.load();
  for (auto& local : locals) {
    const unsigned epoch = local.epoch.load(std::memory_order_seq_cst);
    if (epoch != 0 && epoch != now) return false;
  }
  global_epoch.store(now + 1);
  return true;
}

// Two threads `read` again and again, while others' nodes come in place of the root and are freed.
template <typename Read, typename Free>
int RunEpochs(Read read, Free free) {
  root = new Node{1};
  const auto reader = [=](int me) {
    for (int i = 0; i < 30; i++) read(locals[me]);
  };
  const auto writer = [=] {
    for (int i = 0; i < 8; i++) {
      Node* const old = root.exchange(new Node{i}, std::memory_order_acq_rel);
      for (int steps = 0; steps < 2;) {
        if (Advance()) {
          steps++;
        } else {
          std::this_thread::yield();
        }
      }
      free(old);
      usleep(200);
    }
  };
  RunThreads([=] { reader(0); }, [=] { reader(1); }, writer);
  delete root.load();
  return Done();
}
