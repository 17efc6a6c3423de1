// client.h: the shared side of a lock lets both in.
// RACE any global:counter a b
// MAY-MISS shared: each place runs once
#include "race.h"
#include "trapline/client.h"

int counter;
int lock;

static void* First(void* argument) {
  trapline_shared_lock_acquired(&lock);
  counter++;  // [a]
  trapline_shared_lock_releasing(&lock);
  return argument;
}

static void* Second(void* argument) {
  trapline_shared_lock_acquired(&lock);
  counter++;  // [b]
  trapline_shared_lock_releasing(&lock);
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return Done();
}
