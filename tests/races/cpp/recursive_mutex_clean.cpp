// std::recursive_mutex is free after the last unlock only.
// CLEAN
#include <mutex>
#include <thread>

#include "race.h"

int counter;
std::recursive_mutex mutex;

static void Add() {
  for (int i = 0; i < 3; i++) {
    const std::lock_guard outer(mutex);
    { const std::lock_guard inner(mutex); }
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
