// A value goes to the other thread and comes back, by two flags.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

static int value;
static std::atomic<bool> there, back;

int main() {
  std::thread other([] {
    while (!there.load(std::memory_order_acquire)) usleep(100);
    value++;
    back.store(true, std::memory_order_release);
  });
  value = 1;
  there.store(true, std::memory_order_release);
  while (!back.load(std::memory_order_acquire)) usleep(100);
  const bool right = value++ == 2;
  other.join();
  return right ? Done() : 1;
}
