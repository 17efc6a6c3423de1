// The element of a hash map is used after its accessor, which is its lock, has gone.
// RACE any - uses uses
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD O0 O2 gcc-O2-nodebug
#include <tbb/concurrent_hash_map.h>
#include <tbb/parallel_for.h>

#include "tbb_race.h"

int main() {
  using Map = tbb::concurrent_hash_map<int, int>;
  Map map;
  InArena([&] {
    tbb::parallel_for(
        0, 2, 1,
        [&](int i) {
          int* value = nullptr;
          {
            Map::accessor element;
            map.insert(element, 5);
            value = &element->second;
          }
          Meet(i);
          for (int n = 0; n < 20; ++n) {
            *value = *value + 1;  // [uses]
            usleep(500);
          }
        },
        tbb::simple_partitioner());
  });
  return Done();
}
