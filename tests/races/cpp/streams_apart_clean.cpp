// Each thread its own string stream, random numbers and clock.
// CLEAN
// SECONDS 60
#include <chrono>
#include <random>
#include <sstream>
#include <thread>

#include "race.h"

long results[2];

static void Works(int own) {
  std::ostringstream out;
  out << "n=" << own << ' ' << 2.5 << std::hex << 255;
  std::istringstream in(out.str().substr(2));
  in >> results[own];
  std::minstd_rand random(static_cast<unsigned>(own));
  results[own] += static_cast<long>(random() % 2);
  Use(std::chrono::steady_clock::now().time_since_epoch().count());
  results[own] +=
      std::stol(std::to_string(own)) + static_cast<long>(std::string(own + 20, 'x').size());
}

int main() {
  std::thread one(Works, 0), other(Works, 1);
  one.join();
  other.join();
  return Done();
}
