// condition_variable_any with a shared_mutex and a stop token.
// CLEAN
#include <condition_variable>
#include <shared_mutex>
#include <thread>

#include "race.h"

int value, seen;
bool ready;
std::shared_mutex mutex;
std::condition_variable_any condition;

int main() {
  std::jthread worker([](std::stop_token token) {
    {
      std::shared_lock lock(mutex);
      condition.wait(lock, token, [] { return ready; });
      seen = value;
    }
    std::unique_lock lock(mutex);
    condition.wait(lock, token, [] { return false; });
    value++;
  });
  {
    const std::unique_lock lock(mutex);
    value = 1;
    ready = true;
  }
  condition.notify_all();
  usleep(20000);
  worker.request_stop();
  worker.join();
  return value + seen == 3 ? Done() : 1;
}
