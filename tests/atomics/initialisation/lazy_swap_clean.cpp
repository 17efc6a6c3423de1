// Both make an object; who comes second drops its own and uses the first's.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<int*> shared;

static int Value() {
  int* object = shared.load(std::memory_order_acquire);
  if (object == nullptr) {
    int* const own = new int(5);
    if (shared.compare_exchange_strong(object, own, std::memory_order_acq_rel,
                                       std::memory_order_acquire)) {
      object = own;
    } else {
      delete own;
    }
  }
  return *object;
}

int main() {
  std::thread first([] { Check(Value() == 5); });
  std::thread second([] { Check(Value() == 5); });
  first.join();
  second.join();
  delete shared.load();
  return Done();
}
