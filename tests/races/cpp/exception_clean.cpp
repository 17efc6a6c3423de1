// Threads that throw and catch at the same time: the unwinder's caches are its own affair.
// CLEAN
// BUILD O0 O2 static libcxx
#include <stdexcept>
#include <string>
#include <thread>

#include "race.h"

static void Throw(int depth) {
  if (depth == 0) throw std::runtime_error("thrown");
  Throw(depth - 1);
  Use(depth);
}

static void Work() {
  for (int i = 0; i < 2; i++) {
    try {
      Throw(2);
    } catch (const std::exception& error) {
      Use(error.what()[0]);
    }
  }
}

int main() {
  std::thread first(Work);
  std::thread second(Work);
  first.join();
  second.join();
  return Done();
}
