// Threads print at the same time to one std::ostringstream each and to std::clog, which is shared.
// CLEAN
#include <iostream>
#include <sstream>
#include <thread>

#include "race.h"

static void Work() {
  std::ostringstream text;
  text << 4 << ' ' << 0.5;
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
