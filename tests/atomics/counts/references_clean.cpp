// A reference count whose last holder deletes: acquire and release.
// CLEAN
// TAGS fast
#include <atomic>
#include <thread>

#include "race.h"

struct Object {
  std::atomic<int> references{2};
  int value = 0;
};

static void Drop(Object* object) {
  Use(object->value);
  if (object->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete object;
}

int main() {
  auto* const object = new Object;
  std::thread first(Drop, object);
  std::thread second(Drop, object);
  first.join();
  second.join();
  return Done();
}
