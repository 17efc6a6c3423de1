// The same as it is met with: a loop of many parts, each of which is done at once.
// RACE any global:count counts counts
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD O0 O2 gcc-O2-nodebug stripped
#include <tbb/parallel_for.h>

#include "tbb_race.h"

static int count;

int main() {
  InArena([] {
    tbb::parallel_for(0, 20000, [](int i) {
      if (i < 2 || i % 100 == 0) usleep(100);
      count = count + 1;  // [counts]
    });
  });
  Use(count);
  return Done();
}
