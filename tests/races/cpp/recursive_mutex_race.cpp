// After the last unlock of a std::recursive_mutex nothing is held.
// RACE any global:counter a a
// MAY-MISS shared: the place runs once in each thread
#include <mutex>
#include <thread>

#include "race.h"

int counter;
std::recursive_mutex mutex;

static void Add() {
  {
    const std::lock_guard outer(mutex);
    const std::lock_guard inner(mutex);
  }
  counter++;  // [a]
}

int main() {
  std::thread first(Add);
  std::thread second(Add);
  first.join();
  second.join();
  return Done();
}
