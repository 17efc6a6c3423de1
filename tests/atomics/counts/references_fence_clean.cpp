// The same with a release decrement and an acquire fence for the last holder.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

struct Object {
  std::atomic<int> references{2};
  int value = 0;
};

static void Drop(Object* object) {
  Use(object->value);
  if (object->references.fetch_sub(1, std::memory_order_release) == 1) {
    std::atomic_thread_fence(std::memory_order_acquire);
    delete object;
  }
}

int main() {
  auto* const object = new Object;
  std::thread first(Drop, object);
  std::thread second(Drop, object);
  first.join();
  second.join();
  return Done();
}
