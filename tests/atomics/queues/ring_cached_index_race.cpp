// A ring for one producer and one consumer, each with a copy of the other's index.
// RACE any - a b
// MAY-MISS shared: who had the page first did so alone
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include <atomic>
#include <memory>
#include <thread>

#include "race.h"

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

int main() {
  std::thread producer([] {
    for (int i = 0; i < 20; i++) {
      int* const item = new int(i);
      while (!ring.Push(item)) std::this_thread::yield();
      *item = 3;  // [a]
    }
  });
  std::thread consumer([] {
    for (int i = 0; i < 20; i++) {
      int* item;
      while (!ring.Pop(item)) std::this_thread::yield();
      *item += 1;  // [b]
    }
  });
  producer.join();
  consumer.join();
  return Done();
}
