// The loop variable is given to all threads, and the creator goes on changing it.
// RACE read-write stack:index a b
// MAY-MISS shared: the last thread reads once
#include "race.h"

static void* Reader(void* argument) {
  Use(*(int*)argument);  // [a]
  return NULL;
}

int main(void) {
  pthread_t threads[3];
  int index;
  for (index = 0; index < 3;) {
    threads[index] = Start(Reader, &index);
    index++;  // [b]
  }
  for (int i = 0; i < 3; i++) Join(threads[i]);
  return Done();
}
