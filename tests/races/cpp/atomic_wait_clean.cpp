// std::atomic's wait and notify.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

int value;
std::atomic<int> ready;

int main() {
  std::thread receiver([] {
    ready.wait(0);
    value++;
  });
  value = 1;
  ready.store(1);
  ready.notify_one();
  receiver.join();
  return value == 2 ? Done() : 1;
}
