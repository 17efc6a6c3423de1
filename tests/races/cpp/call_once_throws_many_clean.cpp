// call_once whose first callers throw; what the one that succeeds wrote is seen by all.
// CLEAN
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "race.h"

static std::once_flag once;
long made, attempts, late;

int main() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++) {
    threads.emplace_back([] {
      bool first = false;
      for (;;) {
        try {
          std::call_once(once, [&] {
            if (++attempts < 3) throw std::runtime_error("no");
            made = 1;
            first = true;
          });
          break;
        } catch (const std::runtime_error&) {
        }
      }
      Use(made + attempts);
    });
  }
  for (auto& thread : threads) thread.join();
  return Done();
}
