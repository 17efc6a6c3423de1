// A once_flag each: the function runs twice.
// RACE write-write global:value a a
// MAY-MISS shared: the place runs once in each thread
#include <mutex>
#include <thread>

#include "race.h"

int value;

static void User() {
  std::once_flag once;
  std::call_once(once, [] {
    value = 1;  // [a]
  });
}

int main() {
  std::thread first(User);
  std::thread second(User);
  first.join();
  second.join();
  return Done();
}
