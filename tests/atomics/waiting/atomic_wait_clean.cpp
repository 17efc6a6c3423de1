// atomic::wait and notify.
// CLEAN
// TAGS fast
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<int> ready;
static int value;

int main() {
  std::thread waiter([] {
    ready.wait(0, std::memory_order_acquire);
    value++;
  });
  value = 1;
  ready.store(1, std::memory_order_release);
  ready.notify_all();
  waiter.join();
  return value == 2 ? Done() : 1;
}
