// A flag that one thread sets by an atomic operation's macro, and another one reads plainly.
// RACE atomic-plain - set test
// BUILD O0 O2 clang-O2
// MAY-MISS shared: each place runs once
// MAY-MISS write-shared: each place runs once
// TAGS fast
#include "macros.h"
#include "race.h"

struct State {
  int ready, seen;
};

static struct State* state;

static void* Sets(void* argument) {
  STORE_RELEASE(&state->ready, 1);  // [set]
  return argument;
}

static void* Tests(void* argument) {
  state->seen = state->ready;  // [test]
  return argument;
}

int main(void) {
  state = calloc(1, sizeof *state);
  RunTwo(Sets, Tests);
  return Done();
}
