// Tasks of groups hand over by wait: to who waits, and to tasks that are run after it.
// CLEAN
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD gcc-O0 gcc-O0-nodebug O2 gcc-O2-nodebug clang-O2-nodebug stripped
#include <tbb/parallel_invoke.h>
#include <tbb/task_group.h>

#include "tbb_race.h"

static long Fibonacci(int n) {
  if (n < 2) return n;
  long a = 0;
  tbb::task_group group;
  group.run([&] { a = Fibonacci(n - 1); });
  const long b = Fibonacci(n - 2);
  group.wait();
  return a + b;
}

int main() {
  long result = 0, first = 0, second = 0, third = 0;
  InArena([&] {
    result = Fibonacci(12);
    tbb::parallel_invoke([&] { first = 1; }, [&] { second = 2; });
    tbb::task_group group;
    group.run([&] { third = first + second; });
    group.wait();
    group.run([&] { ++third; });
    group.run_and_wait([&] { first = second = 0; });
  });
  Check(result == 144 && third == 4);
  return Done();
}
