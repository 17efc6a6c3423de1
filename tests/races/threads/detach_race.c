// Nothing orders what a detached thread does last.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS the process does not end under it
#include "race.h"

int value;

static void* Writer(void* argument) {
  value = 1;  // [a]
  return argument;
}

int main(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  Check(pthread_create(&thread, &attributes, Writer, NULL) == 0);
  value = 2;  // [b]
  Done();
  pthread_exit(NULL);
}
