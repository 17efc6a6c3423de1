// A parallel stage has state of its own.
// RACE any global:seen counts counts
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD O0 O2 gcc-O2-nodebug stripped
#include <tbb/parallel_pipeline.h>

#include "tbb_race.h"

static int seen;

int main() {
  InArena([] {
    int next = 0;
    using tbb::filter_mode;
    tbb::parallel_pipeline(
        2,
        tbb::make_filter<void, int>(filter_mode::serial_in_order, [&](tbb::flow_control& control) {
          if (next == 2) control.stop();
          return next++;
        }) & tbb::make_filter<int, void>(filter_mode::parallel, [](int i) {
          Meet(i);
          seen = seen + 1;  // [counts]
        }));
  });
  Use(seen);
  return Done();
}
