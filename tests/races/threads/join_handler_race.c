// A signal handler runs in a thread that waits in pthread_join: not after the end of the other one.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <signal.h>

#include "race.h"

int value;
static pthread_t waiter;
static int handled;

static void Handler(int signal) {
  value = signal;  // [a]
  __atomic_store_n(&handled, 1, __ATOMIC_RELAXED);
}

static void* Writer(void* argument) {
  usleep(20000);
  pthread_kill(waiter, SIGUSR1);
  value = 2;  // [b]
  while (!__atomic_load_n(&handled, __ATOMIC_RELAXED)) usleep(1000);
  return argument;
}

int main(void) {
  waiter = pthread_self();
  signal(SIGUSR1, Handler);
  Join(Start(Writer, NULL));
  return Done();
}
