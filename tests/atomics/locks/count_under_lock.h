// Two threads count under a lock.
#include "race.h"

// The program's, or those of the lock's header.
static void Lock(void);
static void Unlock(void);

static int value;

static void* Counts(void* argument) {
  for (int i = 0; i < 10; i++) {
    Lock();
    value++;
    Unlock();
  }
  return argument;
}

static int CountUnderLock(void) {
  RunTwo(Counts, Counts);
  return value == 20 ? Done() : 1;
}
