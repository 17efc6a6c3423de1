// Destructors of thread-local objects of two threads write one variable.
// MAY-MISS shared: each destructor runs once
// RACE write-write global:value+0 end end
#include <thread>

#include "race.h"

int value;

struct AtEnd {
  ~AtEnd() { value = used; }  // [end]
  int used = 0;
};
thread_local AtEnd at_end;

int main() {
  std::thread one([] { at_end.used = 1; }), other([] { at_end.used = 2; });
  one.join();
  other.join();
  return Done();
}
