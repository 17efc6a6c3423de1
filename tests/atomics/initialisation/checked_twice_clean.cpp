// Double-checked locking with an atomic pointer.
// CLEAN
// TAGS fast
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's
#include <atomic>
#include <mutex>
#include <thread>

#include "race.h"

struct Object {
  int number;
};
static std::atomic<Object*> instance;
static std::mutex mutex;

static Object* Instance() {
  Object* object = instance.load(std::memory_order_acquire);
  if (object == nullptr) {
    const std::lock_guard guard(mutex);
    object = instance.load(std::memory_order_relaxed);
    if (object == nullptr) {
      object = new Object{3};
      instance.store(object, std::memory_order_release);
    }
  }
  return object;
}

int main() {
  std::thread first([] { Use(Instance()->number); });
  std::thread second([] { Use(Instance()->number); });
  first.join();
  second.join();
  delete instance.load();
  return Done();
}
