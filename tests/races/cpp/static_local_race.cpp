// The guard orders the initialisation only, not what is done to the object later.
// RACE any - a a
// MAY-MISS shared: the place runs once in each thread
#include <thread>

#include "race.h"

struct Object {
  int number = static_cast<int>(Opaque(3));
};

static Object& Instance() {
  static Object object;
  return object;
}

static void User() {
  Instance().number++;  // [a]
}

int main() {
  std::thread first(User);
  std::thread second(User);
  first.join();
  second.join();
  return Done();
}
