// The initial thread has left, and another one calls exit() while a third still runs: handlers come
// after all others only when the last thread ends. Nothing orders this one after what the first
// did.
// RACE any global:value a b
// MAY-MISS shared: each place runs once
#include <sys/resource.h>

#include "race.h"

enum { kLeaving = 3 };

int value;
pid_t initial;

static void Handler(void) {
  value++;  // [b]
}

static void* Sleeper(void* argument) {
  for (;;) pause();
  return argument;
}

static void* Leaver(void* argument) {
  // A thread's priority orders nothing.
  while (getpriority(PRIO_PROCESS, (id_t)initial) != kLeaving) usleep(1000);
  usleep(100000);
  puts("done");
  exit(0);
  return argument;
}

int main(void) {
  initial = ThreadId();
  atexit(Handler);
  Start(Sleeper, NULL);
  Start(Leaver, NULL);
  value = 1;  // [a]
  setpriority(PRIO_PROCESS, (id_t)initial, kLeaving);
  pthread_exit(NULL);
}
