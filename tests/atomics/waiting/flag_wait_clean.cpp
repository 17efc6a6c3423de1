// atomic_flag: test_and_set, wait, notify.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic_flag ready;
static int value;

int main() {
  std::thread waiter([] {
    ready.wait(false);
    value++;
  });
  value = 1;
  ready.test_and_set();
  ready.notify_one();
  waiter.join();
  return value == 2 ? Done() : 1;
}
