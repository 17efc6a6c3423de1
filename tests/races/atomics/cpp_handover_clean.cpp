// std::atomic: store-release, load-acquire; at -O0 calls into the header, at -O2 plain mov.
// CLEAN
// TAGS fast
// BUILD O0 O2 static
#include <atomic>
#include <thread>

#include "race.h"

int value;
std::atomic<bool> ready;

int main() {
  std::thread receiver([] {
    while (!ready.load(std::memory_order_acquire)) usleep(1000);
    value++;
  });
  value = 1;
  ready.store(true, std::memory_order_release);
  receiver.join();
  return value == 2 ? Done() : 1;
}
