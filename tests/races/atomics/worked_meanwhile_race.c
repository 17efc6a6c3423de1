// Without debug info: a loop that works as long as a flag is not set does not wait for it. The flag
// is a plain one, as is shown by nothing but that.
// RACE read-write - a b
// BUILD gcc-O2-nodebug clang-O2-nodebug stripped
// MAY-MISS shared: each place runs once
// MAY-MISS write-shared: each place runs once
// TAGS fast
#include "race.h"

int quit;

__attribute__((noinline)) static void Work(void) { usleep(100); }

static void* Works(void* argument) {
  while (!*(volatile int*)&quit) Work();  // [a]
  return argument;
}

static void* Ends(void* argument) {
  quit = 1;  // [b]
  return argument;
}

int main(void) {
  RunTwo(Works, Ends);
  return Done();
}
