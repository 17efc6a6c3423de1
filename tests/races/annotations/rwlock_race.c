// Writing under the read side of an annotated lock.
// RACE any global:counter a b
// MAY-MISS shared: each place runs once
#include "annotations.h"
#include "race.h"

int counter;
int lock_word;

static void* First(void* argument) {
  ANNOTATE_RWLOCK_ACQUIRED(&lock_word, 0L);
  counter++;  // [a]
  ANNOTATE_RWLOCK_RELEASED(&lock_word, 0L);
  return argument;
}

static void* Second(void* argument) {
  ANNOTATE_RWLOCK_ACQUIRED(&lock_word, 0L);
  counter++;  // [b]
  ANNOTATE_RWLOCK_RELEASED(&lock_word, 0L);
  return argument;
}

int main(void) {
  ANNOTATE_RWLOCK_CREATE(&lock_word);
  RunTwo(First, Second);
  return Done();
}
