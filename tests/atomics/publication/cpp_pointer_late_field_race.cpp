// One field is filled in after the object was published.
// RACE read-write heap:8 a b
// MAY-MISS shared: each place runs once
// LIMIT O2-nodebug: who waits comes after all that the other thread has done meanwhile, as long as its store is not known for what it is
#include <atomic>
#include <thread>

#include "race.h"

struct Object {
  int first, second;
};
static std::atomic<Object*> published;

int main() {
  std::thread reader([] {
    Object* object = nullptr;
    while ((object = published.load(std::memory_order_acquire)) == nullptr) usleep(100);
    Use(object->first);
    Use(object->second);  // [a]
  });
  auto* const object = new Object{1, 0};
  published.store(object, std::memory_order_release);
  object->second = 2;  // [b]
  reader.join();
  delete object;
  return Done();
}
