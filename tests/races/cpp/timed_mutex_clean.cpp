// std::timed_mutex and std::recursive_timed_mutex.
// CLEAN
// TSAN-DIFFERS it does not know the clock variants
#include <chrono>
#include <mutex>
#include <thread>

#include "race.h"

int counter;
std::timed_mutex mutex;
std::recursive_timed_mutex recursive;

static void Add() {
  for (int i = 0; i < 3; i++) {
    Check(mutex.try_lock_for(std::chrono::seconds(20)));
    Check(recursive.try_lock_until(std::chrono::steady_clock::now() + std::chrono::seconds(20)));
    counter++;
    recursive.unlock();
    mutex.unlock();
  }
}

int main() {
  std::thread first(Add);
  std::thread second(Add);
  first.join();
  second.join();
  return counter == 6 ? Done() : 1;
}
