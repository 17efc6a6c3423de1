// One thread changes a std::map that another one searches.
// RACE any - a b
// MAY-MISS shared: the search may come first
#include <map>
#include <thread>

#include "race.h"

std::map<int, int> values{{1, 1}, {2, 2}, {3, 3}};

int main() {
  std::thread reader([] {
    Use(values.find(1)->second);  // [a]
  });
  values[1] = 5;  // [b]
  reader.join();
  return Done();
}
