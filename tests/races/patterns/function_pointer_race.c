// A function pointer is data: one thread calls through it, another one sets it.
// RACE read-write global:callback a b
// MAY-MISS shared: each place runs once
#include "race.h"

static void First(void) { Use(1); }
static void Second(void) { Use(2); }
void (*callback)(void) = First;

static void* Caller(void* argument) {
  callback();  // [a]
  return argument;
}

static void* Setter(void* argument) {
  callback = Second;  // [b]
  return argument;
}

int main(void) {
  RunTwo(Caller, Setter);
  return Done();
}
