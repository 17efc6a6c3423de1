// Writing under a std::shared_lock.
// RACE any global:counter a a
// BUILD O0 O2 libcxx
// MAY-MISS shared: the place runs once in each thread
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "race.h"

int counter;
std::shared_mutex mutex;

static void Add() {
  const std::shared_lock lock(mutex);
  counter++;  // [a]
}

int main() {
  std::thread first(Add);
  std::thread second(Add);
  first.join();
  second.join();
  return Done();
}
