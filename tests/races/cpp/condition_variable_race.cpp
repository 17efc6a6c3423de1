// The sender writes after the notification, outside of the mutex.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
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
    {
      std::unique_lock lock(mutex);
      condition.wait(lock, [] { return ready; });
    }
    value = 1;  // [a]
  });
  {
    const std::lock_guard guard(mutex);
    ready = true;
  }
  condition.notify_one();
  value = 2;  // [b]
  receiver.join();
  return Done();
}
