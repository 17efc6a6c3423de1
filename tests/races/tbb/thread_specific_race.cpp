// What another thread has of its own is looked at while that thread is at work.
// RACE read-write - changes looks
// ALSO any enters looks
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD O0 O2 gcc-O2-nodebug stripped
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include "tbb_race.h"

int main() {
  tbb::enumerable_thread_specific<long*> mine;
  long values[2] = {};
  InArena([&] {
    tbb::parallel_for(
        0, 2, 1,
        [&](int i) {
          mine.local() = &values[i];  // [enters]
          Meet(i);
          if (i == 0) {
            values[0] = 1;  // [changes]
          } else {
            for (const long* const value : mine) Use(*value);  // [looks]
          }
        },
        tbb::simple_partitioner());
  });
  return Done();
}
