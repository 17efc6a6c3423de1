// A spin lock made of std::atomic_flag.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

int counter;
std::atomic_flag locked = ATOMIC_FLAG_INIT;

static void Add() {
  for (int i = 0; i < 3; i++) {
    while (locked.test_and_set(std::memory_order_acquire)) usleep(100);
    counter++;
    locked.clear(std::memory_order_release);
  }
}

int main() {
  std::thread first(Add);
  std::thread second(Add);
  first.join();
  second.join();
  return counter == 6 ? Done() : 1;
}
