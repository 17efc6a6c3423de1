// One of two std::threads forgets the std::mutex.
// RACE any global:counter a b
// MAY-MISS shared: each place runs once
// LOCKS a 1
// BUILD O0 O2 static
// TAGS fast
#include <mutex>
#include <thread>

#include "race.h"

int counter;
std::mutex mutex;

int main() {
  std::thread careful([] {
    const std::lock_guard guard(mutex);
    counter++;  // [a]
  });
  std::thread careless([] {
    counter++;  // [b]
  });
  careful.join();
  careless.join();
  return Done();
}
