// The atomic is a member of an object in the heap that both threads know.
// CLEAN
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's
#include <atomic>
#include <memory>
#include <thread>

#include "race.h"

struct Channel {
  int value = 0;
  std::atomic<int> state{0};
};

int main() {
  const auto channel = std::make_unique<Channel>();
  std::thread reader([&] {
    while (channel->state.load() != 1) usleep(100);
    channel->value++;
    channel->state.store(2, std::memory_order_release);
  });
  channel->value = 1;
  channel->state.store(1, std::memory_order_release);
  while (channel->state.load(std::memory_order_acquire) != 2) usleep(100);
  const bool right = channel->value == 2;
  reader.join();
  return right ? Done() : 1;
}
