// std::barrier: the completion function is ordered after all arrivals and before all departures.
// CLEAN
// BUILD O0 O2 libcxx
#include <barrier>
#include <thread>

#include "race.h"

int parts[2], sum;

int main() {
  const auto add = []() noexcept { sum += parts[0] + parts[1]; };
  std::barrier barrier(2, add);
  const auto works = [&barrier](int own) {
    for (int round = 1; round <= 3; round++) {
      parts[own] = round;
      barrier.arrive_and_wait();
      Use(sum);
      barrier.arrive_and_wait();
    }
  };
  std::thread one(works, 0), other(works, 1);
  one.join();
  other.join();
  return sum == 24 ? Done() : 1;
}
