// A task uses what another one of its group makes, and nobody waits in between.
// RACE read-write global:made makes uses
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD O0 O2 gcc-O2-nodebug stripped
#include <tbb/task_group.h>

#include "tbb_race.h"

static int made;

int main() {
  InArena([] {
    tbb::task_group group;
    group.run([] {
      Meet(0);
      made = 1;  // [makes]
    });
    group.run([] {
      Meet(1);
      Use(made);  // [uses]
    });
    group.wait();
  });
  return Done();
}
