// Hash maps, whose accessors lock elements; vectors that grow; unordered maps and sets.
// CLEAN
// SECONDS 120
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD gcc-O0 gcc-O0-nodebug O2 gcc-O2-nodebug clang-O2-nodebug
#include <tbb/concurrent_hash_map.h>
#include <tbb/concurrent_set.h>
#include <tbb/concurrent_unordered_map.h>
#include <tbb/concurrent_vector.h>
#include <tbb/parallel_for.h>

#include <memory>
#include <string>

#include "tbb_race.h"

int main() {
  using Map = tbb::concurrent_hash_map<int, std::string>;
  Map map;
  tbb::concurrent_vector<std::unique_ptr<int>> vector;
  tbb::concurrent_unordered_map<int, std::string> unordered;
  tbb::concurrent_set<int> set;
  InArena([&] {
    tbb::parallel_for(0, 300, [&](int i) {
      {
        Map::accessor element;
        map.insert(element, i % 40);
        element->second += 'x';
      }
      if (Map::const_accessor element; map.find(element, (i + 1) % 40))
        Check(!element->second.empty());
      Check(*(*vector.push_back(std::make_unique<int>(i))) == i);
      unordered.emplace(i % 30, std::to_string(i % 30));
      Check(unordered.at(i % 30) == std::to_string(i % 30));
      set.insert(i % 20);
      Check(set.contains(i % 20));
    });
    tbb::parallel_for(0, 40, [&](int i) {
      if (i % 2 == 0) map.erase(i);
    });
  });
  long sum = 0;
  for (const auto& [key, text] : map) sum += static_cast<long>(text.size());
  for (const auto& value : vector) sum += *value;
  Check(map.size() == 20 && sum > 44850 && unordered.size() == 30 && set.size() == 20);
  return Done();
}
