// Parts of a loop count without a lock.
// RACE any global:count counts counts
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD O0 O2 clang-O2 gcc-O2-nodebug stripped
#include <tbb/parallel_for.h>

#include "tbb_race.h"

static int count;

int main() {
  InArena([] {
    tbb::parallel_for(
        0, 2, 1,
        [](int i) {
          Meet(i);
          count = count + 1;  // [counts]
        },
        tbb::simple_partitioner());
  });
  Use(count);
  return Done();
}
