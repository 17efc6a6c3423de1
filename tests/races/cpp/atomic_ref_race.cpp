// atomic_ref in one thread, the plain variable in the other.
// RACE atomic-plain global:value+0 atomic plain
// MAY-MISS shared: each place runs once
#include <atomic>
#include <thread>

#include "race.h"

int value;

int main() {
  std::thread one([] { std::atomic_ref<int>(value).fetch_add(1); });  // [atomic]
  std::thread other([] { value = 1; });                               // [plain]
  one.join();
  other.join();
  return Done();
}
