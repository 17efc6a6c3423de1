// An exception nobody catches, in a thread: std::terminate, death by SIGABRT.
#include <stdexcept>
#include <thread>

#include "guest.h"

int main() {
  NoCore();
  Fact(true, "throwing");
  std::thread([] { throw std::runtime_error("uncaught"); }).join();
  Fact(false, "survived");
  return 1;
}
