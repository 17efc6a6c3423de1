// A lock of the program's own, of volatile words, described by the annotations.
// CLEAN
#include "annotations.h"
#include "race.h"

int counter;
volatile int owner;
int lock_word;

// Two threads take turns: a lock in the eyes of the annotations.
static void Lock(int mine) {
  while (owner != mine) usleep(1000);
  ANNOTATE_RWLOCK_ACQUIRED(&lock_word, 1L);
}

static void Unlock(int other) {
  ANNOTATE_RWLOCK_RELEASED(&lock_word, 1L);
  owner = other;
}

static void* First(void* argument) {
  Lock(0);
  counter++;
  Unlock(1);
  return argument;
}

static void* Second(void* argument) {
  Lock(1);
  counter++;
  Unlock(0);
  return argument;
}

int main(void) {
  ANNOTATE_BENIGN_RACE_SIZED(&owner, sizeof(owner), "part of the lock");
  ANNOTATE_RWLOCK_CREATE(&lock_word);
  RunTwo(First, Second);
  return Done();
}
