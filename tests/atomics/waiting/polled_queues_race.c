// Who gave the work writes to what the last worker works on before that one is done.
// LIMIT O0-nodebug: the loops call a function for the word
// RACE any global:workers write work
// MAY-MISS shared: who had the page first did so alone
#include "polled_queues.h"

static void Do(const struct Work* work) {
  for (int i = 0; i < work->count; i++) work->numbers[i] += i;  // [work]
}

int main(void) {
  pthread_t threads[kWorkers];
  for (int i = 0; i < kWorkers; i++) {
    pthread_mutex_init(&workers[i].mutex, NULL);
    pthread_cond_init(&workers[i].wake, NULL);
    threads[i] = Start(Works, &workers[i]);
  }
  struct Worker* const last = &workers[kWorkers - 1];
  for (int round = 0; round < kRounds; round++) {
    struct Work work[kWorkers];
    for (int i = 0; i < kWorkers; i++) {
      work[i] = (struct Work){workers[i].numbers, kNumbers};
      Give(&workers[i], &work[i]);
    }
    last->numbers[round] = round;  // [write]
    WaitForAll();
  }
  for (int i = 0; i < kWorkers; i++) Give(&workers[i], &quit);
  for (int i = 0; i < kWorkers; i++) Join(threads[i]);
  return Done();
}
