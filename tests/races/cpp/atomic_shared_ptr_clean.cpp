// atomic<shared_ptr>, and the free functions for shared_ptr: the object is read as it was stored.
// CLEAN
#include <atomic>
#include <memory>
#include <thread>

#include "race.h"

std::atomic<std::shared_ptr<int>> current;
std::shared_ptr<int> older;

int main() {
  std::thread reader([] {
    std::shared_ptr<int> seen;
    while (!(seen = current.load())) usleep(1000);
    Use(*seen);
    while (!(seen = std::atomic_load(&older))) usleep(1000);
    Use(*seen);
  });
  current.store(std::make_shared<int>(1));
  std::atomic_store(&older, std::make_shared<int>(2));
  reader.join();
  return Done();
}
