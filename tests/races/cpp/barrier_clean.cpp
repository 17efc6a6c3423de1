// std::barrier with a completion function that touches what both threads touch.
// CLEAN
// BUILD O0 O2 libcxx
#include <barrier>
#include <thread>

#include "race.h"

int values[2];
int total;

static void Complete() noexcept { total += values[0] + values[1]; }
std::barrier barrier(2, Complete);

static void Work(int mine) {
  for (int phase = 0; phase < 3; phase++) {
    values[(mine + phase) % 2]++;
    barrier.arrive_and_wait();
    Use(total);
    barrier.arrive_and_wait();
  }
}

int main() {
  std::thread first(Work, 0);
  std::thread second(Work, 1);
  first.join();
  second.join();
  return values[0] + values[1] == 6 ? Done() : 1;
}
