// libstdc++'s parallel algorithms tell each other by a relaxed flag that what they look for was
// found.
// CLEAN
// NEEDS tbb
// LINK -ltbb
// TSAN-DIFFERS the library is not instrumented
// BUILD O0 O2 gcc-O2-nodebug clang-O2-nodebug
#include <algorithm>
#include <execution>
#include <numeric>
#include <vector>

#include "tbb_race.h"

int main() {
  constexpr int kRounds = 50, kNumbers = 20000;
  std::vector<long> numbers(kNumbers);
  std::iota(numbers.begin(), numbers.end(), 0L);
  int found = 0;
  for (int round = 0; round < kRounds; round++) {
    if (std::any_of(std::execution::par, numbers.begin(), numbers.end(),
                    [round](long number) { return number % 97 == round; }))
      found++;
    if (!std::equal(std::execution::par, numbers.begin(), numbers.end(), numbers.begin(),
                    [round](long a, long b) { return a == b && a % 977 != round; }))
      found++;
  }
  return found == 2 * kRounds ? Done() : 1;
}
