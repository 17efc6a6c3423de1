// Destructors of thread-local objects end before the join returns.
// CLEAN
// BUILD O0 O2 static
#include <thread>

#include "race.h"

int value;

struct AtEnd {
  ~AtEnd() { value++; }
  int used = 0;
};
thread_local AtEnd at_end;

int main() {
  std::thread worker([] { at_end.used = 1; });
  worker.join();
  value++;
  return value == 2 ? Done() : 1;
}
