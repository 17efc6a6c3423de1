// A deferred task runs in the thread that asks for it; a chain of asyncs hands a value along.
// CLEAN
#include <future>

#include "race.h"

int value;

int main() {
  std::future<void> deferred = std::async(std::launch::deferred, [] { value++; });
  value++;
  std::future<int> chained = std::async(
      std::launch::async,
      [](std::future<void> inner) {
        inner.get();
        return ++value;
      },
      std::move(deferred));
  return chained.get() + value == 6 ? Done() : 1;
}
