// std::latch.
// CLEAN
#include <latch>
#include <thread>

#include "race.h"

static std::latch done{2};
static int values[2];

int main() {
  std::thread first([] {
    values[0] = 1;
    done.count_down();
  });
  std::thread second([] {
    values[1] = 2;
    done.count_down();
  });
  done.wait();
  const bool right = values[0] + values[1] == 3;
  first.join();
  second.join();
  return right ? Done() : 1;
}
