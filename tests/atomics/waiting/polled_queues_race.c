// Who gave the work writes to what the last worker works on before that one is done.
// LIMIT O0-nodebug: the loops call a function for the word
// RACE any global:workers write work
// MAY-MISS shared: who had the page first did so alone
#include "polled_queues.h"

static void Do(const struct Work* work) {
  for (int i = 0; i < work->count; i++) work->numbers[i] += i;  // [work]
}

int main(void) {
  StartWorkers();
  struct Worker* const last = &workers[kWorkers - 1];
  for (int round = 0; round < kRounds; round++) {
    struct Work work[kWorkers];
    GiveAll(work);
    last->numbers[round] = round;  // [write]
    WaitForAll();
  }
  EndWorkers();
  return Done();
}
