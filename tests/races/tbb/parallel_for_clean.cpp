// The parts of loops, nested and by every partitioner, write each its own; the caller reads all.
// CLEAN
// SECONDS 90
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD gcc-O0 gcc-O0-nodebug O2 clang-O2 gcc-O2-nodebug clang-O2-nodebug stripped
#include <tbb/blocked_range2d.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_for_each.h>

#include <numeric>
#include <vector>

#include "tbb_race.h"

int main() {
  std::vector<long> in(1000), out(1000);
  InArena([&] {
    tbb::parallel_for(0, 1000, [&](int i) { in[i] = i; });
    const auto reverse = [&](const tbb::blocked_range<int>& range) {
      for (int i = range.begin(); i != range.end(); ++i) out[i] += in[999 - i];
    };
    const tbb::blocked_range<int> all(0, 1000, 50);
    tbb::affinity_partitioner affinity;
    tbb::parallel_for(all, reverse, tbb::simple_partitioner());
    tbb::parallel_for(all, reverse, tbb::auto_partitioner());
    tbb::parallel_for(all, reverse, tbb::static_partitioner());
    tbb::parallel_for(all, reverse, affinity);
    tbb::parallel_for(all, reverse, affinity);
    tbb::parallel_for(
        0, 10, [&](int i) { tbb::parallel_for(0, 100, [&, i](int j) { out[100 * i + j] += 1; }); });
    tbb::parallel_for_each(out, [](long& value) { ++value; });
  });
  Check(std::accumulate(out.begin(), out.end(), 0L) == 5 * 499500 + 2000);
  return Done();
}
