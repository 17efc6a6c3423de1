// std::atomic<std::shared_ptr>: stored by one thread, loaded by another.
// CLEAN
#include <atomic>
#include <memory>
#include <thread>

#include "race.h"

static std::atomic<std::shared_ptr<int>> shared;

int main() {
  std::thread reader([] {
    std::shared_ptr<int> object;
    while ((object = shared.load()) == nullptr) usleep(100);
    Check(*object == 7);
  });
  shared.store(std::make_shared<int>(7));
  reader.join();
  return Done();
}
