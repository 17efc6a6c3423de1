// An object published through an atomic pointer.
// CLEAN
// TAGS fast
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
    object->first += object->second;
  });
  auto* const object = new Object{1, 2};
  published.store(object, std::memory_order_release);
  reader.join();
  const bool right = object->first == 3;
  delete object;
  return right ? Done() : 1;
}
