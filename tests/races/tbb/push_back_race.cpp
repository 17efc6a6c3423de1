// Parts of a loop append to one vector.
// RACE any global:numbers appends appends
// ALSO any appends appends
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD O0 O2 gcc-O2-nodebug stripped
#include <tbb/parallel_for.h>

#include <vector>

#include "tbb_race.h"

static std::vector<int> numbers;

int main() {
  numbers.reserve(10);
  InArena([] {
    tbb::parallel_for(
        0, 2, 1,
        [](int i) {
          Meet(i);
          numbers.push_back(i);  // [appends]
        },
        tbb::simple_partitioner());
  });
  Check(!numbers.empty());
  return Done();
}
