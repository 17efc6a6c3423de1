// A ring for one producer and one consumer: two atomic indices, plain slots.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

constexpr int kSlots = 2;
constexpr int kItems = 6;
int slots[kSlots];
std::atomic<int> head;
std::atomic<int> tail;

int main() {
  std::thread producer([] {
    for (int i = 0; i < kItems; i++) {
      while (head.load(std::memory_order_relaxed) - tail.load(std::memory_order_acquire) ==
             kSlots) {
        usleep(500);
      }
      slots[i % kSlots] = i;
      head.store(i + 1, std::memory_order_release);
    }
  });
  int sum = 0;
  for (int i = 0; i < kItems; i++) {
    while (head.load(std::memory_order_acquire) == i) usleep(500);
    sum += slots[i % kSlots];
    tail.store(i + 1, std::memory_order_release);
  }
  producer.join();
  return sum == 15 ? Done() : 1;
}
