// std::mutex and std::lock_guard.
// CLEAN
#include <mutex>
#include <thread>

#include "race.h"

int counter;
std::mutex mutex;

static void Add() {
  for (int i = 0; i < 3; i++) {
    const std::lock_guard guard(mutex);
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
