// std::shared_timed_mutex with time limits.
// CLEAN
// BUILD O0 O2 libcxx
// TSAN-DIFFERS it does not know the clock variants
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "race.h"

int counter;
std::shared_timed_mutex mutex;

static void Add() {
  for (int i = 0; i < 3; i++) {
    {
      const std::shared_lock lock(mutex, std::chrono::seconds(20));
      Check(lock.owns_lock());
      Use(counter);
    }
    const std::unique_lock lock(mutex, std::chrono::seconds(20));
    Check(lock.owns_lock());
    counter++;
  }
}

int main() {
  std::thread first(Add);
  std::thread second(Add);
  first.join();
  second.join();
  return counter == 6 ? Done() : 1;
}
