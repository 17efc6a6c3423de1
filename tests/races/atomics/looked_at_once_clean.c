// Without debug info: a word that another thread has changed natively, atomically, on pages that
// were its own then, and that is looked at once, by a plain load that no operation meets.
// CLEAN
// BUILD gcc-O2-nodebug clang-O2-nodebug stripped
#include <stdatomic.h>

#include "race.h"

enum { kRounds = 30, kElements = 10000 };

struct Task {
  long before[2];
  _Atomic unsigned done;
  long* numbers;
};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given = PTHREAD_COND_INITIALIZER;
static struct Task* next;

static void* Works(void* argument) {
  for (int round = 0; round < kRounds; round++) {
    pthread_mutex_lock(&mutex);
    while (next == NULL) pthread_cond_wait(&given, &mutex);
    struct Task* task = next;
    next = NULL;
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < kElements; i++) task->numbers[i] += i;
    atomic_fetch_add_explicit(&task->done, 1, memory_order_release);
  }
  return argument;
}

int main(void) {
  const pthread_t worker = Start(Works, NULL);
  long sum = 0;
  for (int round = 0; round < kRounds; round++) {
    struct Task* task = calloc(1, sizeof *task);
    task->numbers = calloc(kElements, sizeof(long));
    pthread_mutex_lock(&mutex);
    next = task;
    pthread_cond_signal(&given);
    pthread_mutex_unlock(&mutex);
    usleep(4000);
    if (atomic_load_explicit(&task->done, memory_order_acquire) != 1)
      while (atomic_fetch_or(&task->done, 0) != 1) usleep(100);
    for (int i = 0; i < kElements; i++) sum += task->numbers[i];
    free(task->numbers);
    free(task);
  }
  Join(worker);
  return sum == kRounds * (kElements * (kElements - 1L) / 2) ? Done() : 1;
}
