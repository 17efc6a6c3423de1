// A std::atomic member of a heap object hands over.
// CLEAN
#include <atomic>
#include <memory>
#include <thread>

#include "race.h"

struct Slot {
  int value = 0;
  std::atomic<int> state{0};
};

int main() {
  const auto slot = std::make_unique<Slot>();
  std::thread other([&slot] {
    while (slot->state.load(std::memory_order_acquire) != 1) usleep(1000);
    slot->value++;
    slot->state.store(2, std::memory_order_release);
  });
  slot->value = 1;
  slot->state.store(1, std::memory_order_release);
  while (slot->state != 2) usleep(1000);
  const int seen = slot->value++;
  other.join();
  return seen == 2 ? Done() : 1;
}
