// std::unique_lock, deferred and tried.
// CLEAN
#include <mutex>
#include <thread>

#include "race.h"

int counter;
std::mutex mutex;

static void Add() {
  for (int i = 0; i < 3; i++) {
    std::unique_lock lock(mutex, std::defer_lock);
    while (!lock.try_lock()) std::this_thread::yield();
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
