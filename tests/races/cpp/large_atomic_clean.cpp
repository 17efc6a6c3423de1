// An atomic object too large for the processor: libatomic does it under a lock.
// CLEAN
// LINK -latomic
#include <atomic>
#include <thread>

#include "race.h"

struct Three {
  long a, b, c;
};
std::atomic<Three> three;
int value;

int main() {
  three.store({0, 0, 0});
  std::thread reader([] {
    while (three.load().c == 0) usleep(1000);
    value++;
  });
  value = 1;
  three.store({1, 2, 3});
  reader.join();
  return value == 2 ? Done() : 1;
}
