// A signal handler runs in the thread that the signal interrupts.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
#include <signal.h>

#include "race.h"

int value;

static void Handler(int signal) {
  value = signal;  // [a]
}

static void* Raiser(void* argument) {
  raise(SIGUSR1);
  return argument;
}

static void* Writer(void* argument) {
  value = 2;  // [b]
  return argument;
}

int main(void) {
  signal(SIGUSR1, Handler);
  RunTwo(Raiser, Writer);
  return Done();
}
