// std::call_once.
// CLEAN
// BUILD O0 O2 libcxx
#include <mutex>
#include <thread>

#include "race.h"

int value;
std::once_flag once;

static void User() {
  std::call_once(once, [] { value = 1; });
  Use(value);
}

int main() {
  std::thread first(User);
  std::thread second(User);
  User();
  first.join();
  second.join();
  return Done();
}
