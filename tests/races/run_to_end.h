// Threads that have ended before anything else is done, and yet are ordered with nothing.
#ifndef TRAPLINE_TESTS_RACES_RUN_TO_END_H_
#define TRAPLINE_TESTS_RACES_RUN_TO_END_H_

#include <semaphore.h>

#include "race.h"

// Runs function(argument) in a thread and waits for its end, which orders nothing. Another thread
// must be there, or everything were ordered when it has ended.
typedef struct Unordered {
  ThreadFunction function;
  void* argument;
  pid_t* id;
} Unordered;

__attribute__((unused)) static void* RunUnordered(void* argument) {
  Unordered* const run = (Unordered*)argument;
  __atomic_store_n(run->id, ThreadId(), __ATOMIC_SEQ_CST);
  return run->function(run->argument);
}

__attribute__((unused)) static pthread_t RunToEnd(ThreadFunction function, void* argument) {
  static Unordered runs[8];
  static pid_t ids[8];
  static int used;
  Unordered* const run = &runs[used];
  pid_t* const id_of = &ids[used++];
  *run = (Unordered){function, argument, id_of};
  const pthread_t thread = Start(RunUnordered, run);
  pid_t id;
  while ((id = __atomic_load_n(id_of, __ATOMIC_SEQ_CST)) == 0) usleep(1000);
  WaitUntilEnded(id);
  return thread;
}

static sem_t idle_ends;

__attribute__((unused)) static void* Idle(void* argument) {
  sem_wait(&idle_ends);
  return argument;
}

__attribute__((unused)) static pthread_t StartIdle(void) {
  sem_init(&idle_ends, 0, 0);
  return Start(Idle, NULL);
}

__attribute__((unused)) static void EndIdle(pthread_t idle) {
  sem_post(&idle_ends);
  Join(idle);
}

#endif  // TRAPLINE_TESTS_RACES_RUN_TO_END_H_
