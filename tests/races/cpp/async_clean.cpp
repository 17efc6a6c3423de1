// std::async: the result, and an exception, arrive ordered.
// CLEAN
#include <future>
#include <stdexcept>

#include "race.h"

int value;

int main() {
  value = 1;
  std::future<int> result = std::async(std::launch::async, [] { return ++value; });
  std::future<void> failing =
      std::async(std::launch::async, [] { throw std::runtime_error("as it should"); });
  int sum = result.get();
  sum += ++value;
  try {
    failing.get();
    return 1;
  } catch (const std::runtime_error& error) {
    sum += error.what()[0] == 'a' ? 1 : 0;
  }
  return sum == 6 ? Done() : 1;
}
