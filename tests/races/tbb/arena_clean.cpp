// Arenas of their own, tasks that are enqueued, isolation, initialisation by whoever comes first.
// CLEAN
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD gcc-O0 gcc-O0-nodebug O2 gcc-O2-nodebug clang-O2-nodebug stripped
#include <tbb/collaborative_call_once.h>
#include <tbb/parallel_for.h>
#include <tbb/task_group.h>

#include <atomic>
#include <vector>

#include "tbb_race.h"

int main() {
  long enqueued = 0, result = 0, once_set = 0;
  std::atomic<long> sum = 0;
  InArena([&] {
    tbb::task_arena arena(2);
    tbb::task_group group;
    arena.execute([&] { group.run([&] { enqueued = 3; }); });
    arena.enqueue(group.defer([&] { result = 7; }));
    arena.execute([&] { group.wait(); });
    tbb::collaborative_once_flag once;
    tbb::parallel_for(0, 50, [&](int) {
      tbb::collaborative_call_once(once, [&] { once_set = 5; });
      sum += once_set;
    });
    std::vector<int> isolated(50);
    tbb::this_task_arena::isolate(
        [&] { tbb::parallel_for(0, 50, [&](int i) { isolated[i] = i; }); });
  });
  Check(enqueued + result == 10 && sum == 250);
  return Done();
}
