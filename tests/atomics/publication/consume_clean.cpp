// A pointer loaded with consume order.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<int*> shared;

int main() {
  std::thread taker([] {
    int* value;
    while ((value = shared.load(std::memory_order_consume)) == nullptr) usleep(100);
    ++*value;
    delete value;
  });
  shared.store(new int(1), std::memory_order_release);
  taker.join();
  return Done();
}
