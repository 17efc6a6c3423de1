// delete against a use in another thread.
// RACE any heap:400 a b
// MAY-MISS shared: each place runs once
#include <thread>

#include "race.h"

int main() {
  int* block = new int[100];
  std::thread user([block] {
    *const_cast<volatile int*>(&block[50]) = 1;  // [a]
  });
  delete[] block;  // [b]
  user.join();
  return Done();
}
