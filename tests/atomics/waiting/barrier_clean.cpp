// std::barrier: two phases, each thread reads what the other wrote.
// CLEAN
#include <barrier>

#include "race.h"
#include "run_threads.h"

static std::barrier<> meeting{2};
static int values[2];

static void Works(int self) {
  for (int round = 1; round <= 3; round++) {
    values[self] = round;
    meeting.arrive_and_wait();
    Check(values[1 - self] == round);
    meeting.arrive_and_wait();
  }
}

int main() {
  RunNumbered(2, Works);
  return Done();
}
