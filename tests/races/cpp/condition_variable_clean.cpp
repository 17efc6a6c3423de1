// std::condition_variable with a predicate.
// CLEAN
#include <condition_variable>
#include <mutex>
#include <thread>

#include "race.h"

int value;
bool ready;
std::mutex mutex;
std::condition_variable condition;

int main() {
  std::thread receiver([] {
    std::unique_lock lock(mutex);
    condition.wait(lock, [] { return ready; });
    value++;
  });
  value = 1;
  {
    const std::lock_guard guard(mutex);
    ready = true;
  }
  condition.notify_one();
  receiver.join();
  return value == 2 ? Done() : 1;
}
