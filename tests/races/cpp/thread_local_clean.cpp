// A thread_local object of each thread, with construction and destruction.
// CLEAN
#include <string>
#include <thread>

#include "race.h"

thread_local std::string text = "a text of this thread that is long enough for the heap";

static void Work() {
  text += "!";
  Use(static_cast<long>(text.size()));
}

int main() {
  std::thread first(Work);
  std::thread second(Work);
  Work();
  first.join();
  second.join();
  return Done();
}
