// std::condition_variable_any over a std::shared_mutex.
// CLEAN
#include <condition_variable>
#include <shared_mutex>
#include <thread>

#include "race.h"

int value;
bool ready;
std::shared_mutex mutex;
std::condition_variable_any condition;

int main() {
  std::thread receiver([] {
    std::shared_lock lock(mutex);
    condition.wait(lock, [] { return ready; });
    Use(value);
  });
  {
    const std::unique_lock lock(mutex);
    value = 1;
    ready = true;
  }
  condition.notify_all();
  receiver.join();
  return Done();
}
