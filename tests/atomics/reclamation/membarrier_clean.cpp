// Readers mark themselves by relaxed stores; the writer makes up for that by membarrier.
// CLEAN
// LIMIT clang-O0-nodebug: on x86-64 a release store is a plain mov
#include <linux/membarrier.h>

#include <atomic>
#include <thread>

#include "race.h"

struct Node {
  long value;
};
static std::atomic<Node*> current;
static std::atomic<int> inside, started;

static void Reader() {
  for (int i = 0; i < 50; i++) {
    inside.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    Node* const node = current.load(std::memory_order_acquire);
    Use(node->value);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    inside.store(0, std::memory_order_relaxed);
    started.store(1, std::memory_order_relaxed);
  }
}

int main() {
  Check(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0);
  current = new Node{1};
  std::thread reader(Reader);
  while (!started.load(std::memory_order_relaxed)) usleep(100);
  Node* const old = current.exchange(new Node{2}, std::memory_order_acq_rel);
  Check(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0);
  while (inside.load(std::memory_order_relaxed)) usleep(100);
  Check(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0);
  old->value = -1;
  reader.join();
  return Done();
}
