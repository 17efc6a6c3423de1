// Who has started a task uses its result before waiting.
// RACE read-write global:result makes uses
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD O0 O2 gcc-O2-nodebug stripped
#include <tbb/task_group.h>

#include "tbb_race.h"

static int result;

int main() {
  InArena([] {
    tbb::task_group group;
    group.run([] {
      Meet(0);
      result = 1;  // [makes]
    });
    Meet(1);
    Use(result);  // [uses]
    group.wait();
  });
  return Done();
}
