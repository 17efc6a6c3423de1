// A thread that only arrives at a std::barrier reads what the other one still writes in that phase.
// The barrier's count of those who wait, which both change in each phase, orders nothing.
// RACE read-write global:parts read write
// MAY-MISS shared: the places run natively until a page is shared
// MAY-MISS write-shared: the places run natively until a page is shared
#include <barrier>
#include <thread>

#include "race.h"

long parts[2];
long seen;
std::barrier barrier(2);

int main() {
  constexpr int kPhases = 50;
  std::thread first([] {
    for (int i = 0; i < kPhases; ++i) {
      parts[0] = i;
      auto token = barrier.arrive();
      seen += parts[1];  // [read]
      barrier.wait(std::move(token));
    }
  });
  std::thread second([] {
    for (int i = 0; i < kPhases; ++i) {
      parts[1] = i;  // [write]
      barrier.arrive_and_wait();
    }
  });
  first.join();
  second.join();
  return Done();
}
