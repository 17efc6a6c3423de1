// An initialiser that throws is run again by another thread; what it did before is ordered too.
// CLEAN
// BUILD O0 O2 static libcxx
#include <mutex>
#include <stdexcept>
#include <thread>

#include "race.h"

int attempts, value;
std::once_flag flag;

void Initialise() {
  usleep(20000);
  if (++attempts == 1) throw std::runtime_error("not yet");
  value = 1;
}

void Reads() {
  for (;;) {
    try {
      std::call_once(flag, Initialise);
      break;
    } catch (const std::runtime_error&) {
      usleep(50000);  // the other one tries next
    }
  }
  Use(value);
}

int main() {
  std::thread one(Reads), other(Reads);
  one.join();
  other.join();
  return attempts == 2 ? Done() : 1;
}
