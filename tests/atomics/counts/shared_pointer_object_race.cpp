// The count orders nothing but the deletion: the object itself races.
// RACE write-write heap a a
// MAY-MISS shared: each place runs once in a thread
#include <memory>
#include <thread>

#include "race.h"

struct Object {
  int value = 3;
};

int main() {
  const auto object = std::make_shared<Object>();
  const auto work = [](Object* shared) {
    shared->value = 4;  // [a]
  };
  std::thread first(work, object.get());
  std::thread second(work, object.get());
  first.join();
  second.join();
  return Done();
}
