// LIMIT O0-nodebug: the loops call a function for the word
// CLEAN
#include "polled_queues.h"

static void Do(const struct Work* work) {
  for (int i = 0; i < work->count; i++) work->numbers[i] += i;
}

int main(void) {
  StartWorkers();
  for (int round = 0; round < kRounds; round++) {
    struct Work work[kWorkers];
    GiveAll(work);
    WaitForAll();
    if (round % 5 == 0) usleep(5000);
  }
  EndWorkers();
  return workers[0].numbers[1] == kRounds ? Done() : 1;
}
