// The initialisation of a function's static variable is ordered before its uses.
// CLEAN
// BUILD O0 O2 static
#include <string>
#include <thread>

#include "race.h"

struct Object {
  int number = 3;
  std::string text = "made once, and in the heap because of its length";
};

static const Object& Instance() {
  static const Object object;
  return object;
}

static void User() { Use(Instance().number + static_cast<long>(Instance().text.size())); }

int main() {
  std::thread first(User);
  std::thread second(User);
  User();
  first.join();
  second.join();
  return Done();
}
