// The initialiser of a static local throws the first time.
// CLEAN
// BUILD O0 O2 static
#include <stdexcept>
#include <thread>

#include "race.h"

int attempts;

struct Table {
  Table() {
    usleep(20000);
    if (++attempts == 1) throw std::runtime_error("not yet");
    value = 1;
  }
  int value = 0;
};

Table& Only() {
  static Table table;
  return table;
}

void Reads() {
  for (;;) {
    try {
      Use(Only().value);
      return;
    } catch (const std::runtime_error&) {
      usleep(50000);  // the other one tries next
    }
  }
}

int main() {
  std::thread one(Reads), other(Reads);
  one.join();
  other.join();
  return attempts == 2 ? Done() : 1;
}
