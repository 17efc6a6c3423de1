/* Threads that have never allocated end detached, more at a time than libc keeps stacks for: the
 * last thing they do is to free what belongs to each other's stacks. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRounds = 100, kThreads = 24 };

static pthread_barrier_t all_run;

static void* Idle(void* argument) {
  pthread_barrier_wait(&all_run);
  return argument;
}

static void* Allocate(void* argument) {
  free(malloc(100));
  return argument;
}

int main(void) {
  for (int round = 0; round < kRounds; ++round) {
    pthread_barrier_init(&all_run, NULL, kThreads + 1);
    for (int i = 0; i < kThreads; ++i) {
      pthread_t thread;
      if (pthread_create(&thread, NULL, Idle, NULL) != 0 || pthread_detach(thread) != 0) return 1;
    }
    pthread_barrier_wait(&all_run);
    pthread_barrier_destroy(&all_run);
    for (int i = 0; i < kThreads; ++i) {
      pthread_t thread;
      if (pthread_create(&thread, NULL, Allocate, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    }
  }
  puts("all threads have ended");
}
