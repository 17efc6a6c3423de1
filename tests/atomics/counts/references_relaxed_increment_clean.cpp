// References are taken with relaxed order and given back with acquire and release: as it should be.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

class Object {
 public:
  void Take() { references_.fetch_add(1, std::memory_order_relaxed); }
  void Drop() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  int value = 0;

 private:
  std::atomic<int> references_{1};
};

static void Works(Object* object) {
  for (int i = 0; i < 3; ++i) {
    object->Take();
    Use(object->value);
    object->Drop();
  }
  object->Drop();
}

int main() {
  auto* const object = new Object;
  object->Take();
  std::thread first(Works, object);
  std::thread second(Works, object);
  first.join();
  second.join();
  return Done();
}
