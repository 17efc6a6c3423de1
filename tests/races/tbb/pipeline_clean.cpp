// Items of a pipeline go from stage to stage; serial stages have their state to themselves.
// CLEAN
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD gcc-O0 gcc-O0-nodebug O2 gcc-O2-nodebug clang-O2-nodebug stripped
#include <tbb/parallel_pipeline.h>

#include "tbb_race.h"

int main() {
  long sum = 0;
  int next = 0;
  InArena([&] {
    using tbb::filter_mode;
    tbb::parallel_pipeline(
        6, tbb::make_filter<void, long*>(filter_mode::serial_in_order,
                                         [&](tbb::flow_control& control) -> long* {
                                           if (next == 100) {
                                             control.stop();
                                             return nullptr;
                                           }
                                           return new long(next++);
                                         }) &
               tbb::make_filter<long*, long*>(filter_mode::parallel,
                                              [](long* item) {
                                                *item *= 2;
                                                return item;
                                              }) &
               tbb::make_filter<long*, void>(filter_mode::serial_out_of_order, [&](long* item) {
                 sum += *item;
                 delete item;
               }));
  });
  Check(sum == 9900);
  return Done();
}
