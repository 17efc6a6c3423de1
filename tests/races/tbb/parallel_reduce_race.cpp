// The parts of a sum add to what all of them have, too.
// RACE any global:largest looks looks
// ALSO any looks looks
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD O0 O2
#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <functional>

#include "tbb_race.h"

static long largest;

int main() {
  InArena([] {
    const long sum = tbb::parallel_reduce(
        tbb::blocked_range<int>(0, 2, 1), 0L,
        [](const auto& range, long part) {
          Meet(range.begin());
          largest = largest < range.end() ? range.end() : 0;  // [looks]
          return part + range.begin();
        },
        std::plus<>(), tbb::simple_partitioner());
    Check(sum == 1);
  });
  Use(largest);
  return Done();
}
