// std::shared_mutex: writers alone, readers together.
// CLEAN
// BUILD O0 O2 libcxx
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "race.h"

int counter;
std::shared_mutex mutex;

static void Add() {
  for (int i = 0; i < 3; i++) {
    {
      const std::shared_lock lock(mutex);
      Use(counter);
    }
    const std::unique_lock lock(mutex);
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
