// The mutex whose waiters queue: they spin on nodes on each other's stacks, by plain loads and
// stores that are inlined into the program. Optimised and without debug info those are taken for
// races (docs/detection.md, "What real programs report"): not built so here.
// CLEAN
// SECONDS 90
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD gcc-O0 gcc-O0-nodebug O2
#include <tbb/parallel_for.h>
#include <tbb/queuing_mutex.h>

#include "tbb_race.h"

int main() {
  InArena([] {
    tbb::queuing_mutex mutex;
    long count = 0;
    tbb::parallel_for(0, 200, [&](int) {
      const tbb::queuing_mutex::scoped_lock lock(mutex);
      ++count;
    });
    Check(count == 200);
  });
  return Done();
}
