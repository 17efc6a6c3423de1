// std::scoped_lock over two mutexes, in both orders.
// CLEAN
#include <mutex>
#include <thread>

#include "race.h"

int counter;
std::mutex one;
std::mutex other;

static void Add() {
  for (int i = 0; i < 3; i++) {
    if (i % 2 == 0) {
      const std::scoped_lock lock(one, other);
      counter++;
    } else {
      const std::scoped_lock lock(other, one);
      counter++;
    }
  }
}

int main() {
  std::thread first(Add);
  std::thread second(Add);
  first.join();
  second.join();
  return counter == 6 ? Done() : 1;
}
