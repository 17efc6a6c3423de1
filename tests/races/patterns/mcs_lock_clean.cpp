// A queue lock: each waiter spins on a word in its own stack.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

struct Waiter {
  std::atomic<Waiter*> next{nullptr};
  std::atomic<bool> waits{true};
};
static std::atomic<Waiter*> tail;
int value;

static void Works() {
  for (int i = 0; i < 5; i++) {
    Waiter own;
    if (Waiter* const before = tail.exchange(&own)) {
      before->next.store(&own, std::memory_order_release);
      while (own.waits.load(std::memory_order_acquire)) usleep(100);
    }
    value++;
    Waiter* expected = &own;
    if (tail.compare_exchange_strong(expected, nullptr)) continue;
    Waiter* after = nullptr;
    while ((after = own.next.load(std::memory_order_acquire)) == nullptr) usleep(100);
    after->waits.store(false, std::memory_order_release);
  }
}

int main() {
  std::thread one(Works), other(Works);
  one.join();
  other.join();
  return value == 10 ? Done() : 1;
}
