// The pointer is plain: it races, and so does the object behind it.
// RACE read-write global:published a b
// ALSO any c d
// MAY-MISS shared: each place runs once in a thread
// LIMIT nodebug: a loop that does nothing else waits for it, as for an atomic one; the instructions are the same
#include <thread>

#include "race.h"

struct Object {
  int first;
};
static Object* volatile published;

int main() {
  std::thread reader([] {
    Object* object = nullptr;
    while ((object = published) == nullptr) usleep(100);  // [a]
    Use(object->first);                                   // [c]
  });
  auto* const object = new Object;
  object->first = 1;   // [d]
  published = object;  // [b]
  reader.join();
  delete object;
  return Done();
}
