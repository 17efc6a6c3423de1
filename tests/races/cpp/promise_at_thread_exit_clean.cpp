// promise::set_value_at_thread_exit: the future is ready once the thread's locals are gone.
// CLEAN
// LIMIT all: the release is made inside libstdc++, when the thread ends
#include <future>
#include <thread>

#include "race.h"

int value;

int main() {
  std::promise<int> promise;
  std::future<int> future = promise.get_future();
  std::thread sender(
      [](std::promise<int> own) {
        own.set_value_at_thread_exit(1);
        value = 1;
      },
      std::move(promise));
  value += future.get();
  sender.join();
  return value == 2 ? Done() : 1;
}
