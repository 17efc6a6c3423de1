// Parts of a sum, of a prefix sum and of a sort are put together.
// CLEAN
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD gcc-O0 gcc-O0-nodebug O2 gcc-O2-nodebug clang-O2-nodebug stripped
#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>
#include <tbb/parallel_scan.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "tbb_race.h"

int main() {
  std::vector<int> data(2000);
  std::vector<long> sums(2000);
  long sum = 0;
  InArena([&] {
    const tbb::blocked_range<int> all(0, 2000, 50);
    for (int i = 0; i < 2000; ++i) data[i] = i * 7919 % 2000;
    tbb::parallel_sort(data);
    sum = tbb::parallel_reduce(
        all, 0L,
        [&](const auto& range, long part) {
          for (int i = range.begin(); i != range.end(); ++i) part += data[i];
          return part;
        },
        std::plus<>());
    tbb::parallel_scan(
        all, 0L,
        [&](const auto& range, long part, bool final) {
          for (int i = range.begin(); i != range.end(); ++i) {
            part += data[i];
            if (final) sums[i] = part;
          }
          return part;
        },
        std::plus<>());
  });
  Check(std::is_sorted(data.begin(), data.end()) && sum == 1999000 && sums.back() == sum);
  return Done();
}
