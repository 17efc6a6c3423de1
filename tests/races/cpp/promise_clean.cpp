// std::promise and std::future hand over, also what the value points to.
// CLEAN
#include <future>
#include <memory>
#include <thread>

#include "race.h"

int value;

int main() {
  std::promise<std::unique_ptr<int>> promise;
  std::future<std::unique_ptr<int>> future = promise.get_future();
  std::thread sender([&promise] {
    value = 1;
    promise.set_value(std::make_unique<int>(4));
  });
  const std::unique_ptr<int> received = future.get();
  value++;
  ++*received;
  sender.join();
  return value + *received == 7 ? Done() : 1;
}
