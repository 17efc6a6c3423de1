// std::latch: who has slept until the count came, and so sees it only once it is awake again.
// CLEAN
#include <unistd.h>

#include <latch>
#include <thread>

#include "race.h"

static std::latch ready{1};
static int value;

int main() {
  int seen = 0;
  std::thread waiter([&seen] {
    ready.wait();
    seen = value;
  });
  usleep(200000);
  value = 42;
  ready.count_down();
  waiter.join();
  return seen == 42 ? Done() : 1;
}
