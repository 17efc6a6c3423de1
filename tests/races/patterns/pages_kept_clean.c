// Pages that the first thread has long kept to itself, over births and ends of threads, are another
// one's by turns: each turn is ordered by a birth and a join, whether or not a third thread lives.
// CLEAN
// SECONDS 60
#include "pages_kept.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* Waits(void* argument) {
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  return argument;
}

static void* Other(void* argument) {
  Work(1);
  return argument;
}

static void ByTurns(void) {
  for (int turn = 0; turn < 4; turn++) {
    WorkByRounds();
    const pthread_t thread = Start(Other, NULL);
    Join(thread);
    Use(table[turn][turn]);
  }
}

int main(void) {
  ByTurns();
  pthread_mutex_lock(&mutex);
  const pthread_t waits = Start(Waits, NULL);
  ByTurns();
  pthread_mutex_unlock(&mutex);
  Join(waits);
  return Done();
}
