// A map that may be filled by many threads does not lock its values.
// RACE any - counts counts
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD O0 O2 gcc-O2-nodebug stripped
#include <tbb/concurrent_unordered_map.h>
#include <tbb/parallel_for.h>

#include "tbb_race.h"

int main() {
  tbb::concurrent_unordered_map<int, int> counts;
  counts[5] = 0;
  InArena([&] {
    tbb::parallel_for(
        0, 2, 1,
        [&](int i) {
          int& value = counts[5];
          Meet(i);
          value = value + 1;  // [counts]
        },
        tbb::simple_partitioner());
  });
  return Done();
}
