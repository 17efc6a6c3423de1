// Double-checked locking with a plain pointer: the first check is not ordered with the assignment.
// RACE read-write global:instance a b
// ALSO any c d
// ALSO any r b
// ALSO any n d
// MAY-MISS shared: one of the places may run once
#include <mutex>
#include <thread>

#include "race.h"

struct Object {
  int number;
};
Object* instance;
std::mutex mutex;

static Object* Instance() {
  if (instance == nullptr) {  // [a]
    const std::lock_guard guard(mutex);
    if (instance == nullptr) {
      Object* object = new Object;  // [n]
      object->number = 3;           // [c]
      instance = object;            // [b]
    }
  }
  return instance;  // [r]
}

static void Work() {
  Use(Instance()->number);  // [d]
}

int main() {
  std::thread first(Work);
  std::thread second(Work);
  first.join();
  second.join();
  delete instance;
  return Done();
}
