// A ring for one producer and one consumer, each with a copy of the other's index.
#include <atomic>
#include <thread>

#include "race.h"
#include "run_threads.h"

template <typename T, unsigned kSize>
class Ring {
 public:
  bool Push(T value) {
    const unsigned tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_seen_ == kSize) {
      head_seen_ = head_.load(std::memory_order_acquire);
      if (tail - head_seen_ == kSize) return false;
    }
    slots_[tail % kSize] = value;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  bool Pop(T& value) {
    const unsigned head = head_.load(std::memory_order_relaxed);
    if (head == tail_seen_) {
      tail_seen_ = tail_.load(std::memory_order_acquire);
      if (head == tail_seen_) return false;
    }
    value = slots_[head % kSize];
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

 private:
  T slots_[kSize];
  alignas(64) std::atomic<unsigned> head_{0};
  unsigned tail_seen_ = 0;
  alignas(64) std::atomic<unsigned> tail_{0};
  unsigned head_seen_ = 0;
};

static Ring<int*, 4> ring;

static void Push(int* item) {
  while (!ring.Push(item)) std::this_thread::yield();
}

// `give` pushes new items, `take` uses those that were popped.
template <typename Give, typename Take>
int RunRing(Give give, Take take) {
  RunThreads(
      [=] {
        for (int i = 0; i < 20; i++) give(new int(i));
      },
      [=] {
        for (int i = 0; i < 20; i++) {
          int* item;
          while (!ring.Pop(item)) std::this_thread::yield();
          take(item);
        }
      });
  return Done();
}
