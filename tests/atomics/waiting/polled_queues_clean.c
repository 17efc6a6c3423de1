// LIMIT O0-nodebug: the loops call a function for the word
// CLEAN
#include "polled_queues.h"

static void Do(const struct Work* work) {
  for (int i = 0; i < work->count; i++) work->numbers[i] += i;
}

int main(void) {
  pthread_t threads[kWorkers];
  for (int i = 0; i < kWorkers; i++) {
    pthread_mutex_init(&workers[i].mutex, NULL);
    pthread_cond_init(&workers[i].wake, NULL);
    threads[i] = Start(Works, &workers[i]);
  }
  for (int round = 0; round < kRounds; round++) {
    struct Work work[kWorkers];
    for (int i = 0; i < kWorkers; i++) {
      work[i] = (struct Work){workers[i].numbers, kNumbers};
      Give(&workers[i], &work[i]);
    }
    WaitForAll();
    if (round % 5 == 0) usleep(5000);
  }
  for (int i = 0; i < kWorkers; i++) Give(&workers[i], &quit);
  for (int i = 0; i < kWorkers; i++) Join(threads[i]);
  return workers[0].numbers[1] == kRounds ? Done() : 1;
}
