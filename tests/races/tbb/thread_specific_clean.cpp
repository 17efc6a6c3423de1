// What each thread has of its own is put together when all have ended.
// CLEAN
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD gcc-O0 gcc-O0-nodebug O2 gcc-O2-nodebug clang-O2-nodebug
#include <tbb/combinable.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <functional>
#include <vector>

#include "tbb_race.h"

int main() {
  tbb::enumerable_thread_specific<std::vector<int>> lists;
  tbb::combinable<long> sums([] { return 0L; });
  InArena([&] {
    tbb::parallel_for(0, 500, [&](int i) {
      lists.local().push_back(i);
      sums.local() += i;
    });
  });
  std::size_t count = 0;
  for (const auto& list : lists) count += list.size();
  Check(count == 500 && sums.combine(std::plus<>()) == 124750);
  return Done();
}
