// try_lock_for came back empty-handed, and nobody looked.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <chrono>
#include <mutex>
#include <thread>

#include "race.h"

int value;
std::timed_mutex mutex;

int main() {
  mutex.lock();
  std::thread careless([] {
    const bool locked = mutex.try_lock_for(std::chrono::milliseconds(1));
    Check(!locked);
    value = 1;  // [a]
  });
  value = 2;  // [b]
  careless.join();
  mutex.unlock();
  return Done();
}
