// One shared_future, several threads that wait for it, by wait_for too.
// CLEAN
// BUILD O0 O2 static libcxx
#include <future>
#include <thread>

#include "race.h"

int value;

int main() {
  std::promise<void> promise;
  const std::shared_future<void> future = promise.get_future().share();
  const auto reads = [future] {
    while (future.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready) {
    }
    future.get();
    Use(value);
  };
  std::thread one(reads), other(reads);
  value = 1;
  promise.set_value();
  one.join();
  other.join();
  return Done();
}
