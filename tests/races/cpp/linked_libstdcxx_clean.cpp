// The C++ library linked into the program's file: what it does for itself does not count.
// CLEAN
// LINK -static-libstdc++ -static-libgcc
#include <iostream>
#include <sstream>
#include <thread>

#include "race.h"

static void Work() {
  std::ostringstream text;
  text << 4 << ' ' << 0.5 << std::endl;
  std::clog << "";
  Use(static_cast<long>(text.str().size()));
}

int main() {
  std::thread first(Work);
  std::thread second(Work);
  first.join();
  second.join();
  return Done();
}
