// A stack with split reference counts: pointer and count in one word of 16 bytes.
#include <atomic>
#include <thread>

#include "race.h"
#include "run_threads.h"

struct Node;
struct alignas(16) Counted {
  long external;
  Node* node;
};
// The value lies where a freed block has nothing of malloc's: it may be written too late.
struct Node {
  Counted next{0, nullptr};
  std::atomic<long> internal{0};
  long value;
};
static std::atomic<Counted> head{Counted{0, nullptr}};

static void Push(Node* node) {
  Counted fresh{1, node};
  node->next = head.load(std::memory_order_relaxed);
  while (!head.compare_exchange_weak(node->next, fresh, std::memory_order_release,
                                     std::memory_order_relaxed)) {
  }
}

// `take` uses the node that was popped, `drop` deletes one that nobody uses any more. Who lets go
// of a node without having popped it has read where it leads, so that releases, too.
template <typename Take, typename Drop>
bool Pop(Take take, Drop drop) {
  Counted old = head.load(std::memory_order_relaxed);
  for (;;) {
    Counted mine;
    do {
      mine = old;
      mine.external++;
    } while (!head.compare_exchange_strong(old, mine, std::memory_order_acquire,
                                           std::memory_order_relaxed));
    old = mine;
    Node* const node = old.node;
    if (!node) return false;
    if (head.compare_exchange_strong(old, node->next, std::memory_order_relaxed)) {
      take(node);
      const long by = mine.external - 2;
      if (node->internal.fetch_add(by, std::memory_order_release) == -by) {
        node->internal.load(std::memory_order_acquire);
        drop(node);
      }
      return true;
    }
    if (node->internal.fetch_add(-1, std::memory_order_release) == 1) {
      node->internal.load(std::memory_order_acquire);
      drop(node);
    }
  }
}

// Two threads make nodes, which `give` fills in and pushes, two pop them.
template <typename Give, typename Take, typename Drop>
int RunStack(Give give, Take take, Drop drop) {
  RunNumbered(4, [=](int me) {
    for (int i = 0; i < 10; i++) {
      if (me < 2) {
        give(new Node);
      } else {
        while (!Pop(take, drop)) std::this_thread::yield();
      }
    }
  });
  return Done();
}
