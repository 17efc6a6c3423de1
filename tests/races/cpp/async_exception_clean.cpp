// An exception thrown in one thread is caught, read and destroyed in others.
// CLEAN
// BUILD O0 O2 static libcxx
#include <future>
#include <stdexcept>
#include <string>
#include <thread>

#include "race.h"

int main() {
  std::future<int> failing = std::async(
      std::launch::async, []() -> int { throw std::runtime_error(std::string(40, 'x')); });
  int caught = 0;
  try {
    failing.get();
  } catch (const std::runtime_error& error) {
    caught += error.what()[39] == 'x' ? 1 : 0;
  }
  std::promise<void> promise;
  const std::shared_future<void> future = promise.get_future().share();
  int seen[2] = {};
  const auto looks = [&](int own) {
    try {
      future.get();
    } catch (const std::exception& error) {
      seen[own] = error.what()[0] == 'y' ? 1 : 0;
    }
  };
  std::thread one(looks, 0), other(looks, 1);
  try {
    throw std::logic_error(std::string(40, 'y'));
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
  one.join();
  other.join();
  return caught + seen[0] + seen[1] == 3 ? Done() : 1;
}
