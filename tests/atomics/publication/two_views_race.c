// A flag in a memfd that each thread maps, set before its data is written.
// RACE any - a b
// MAY-MISS shared: who had the page first did so alone
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include "two_views.h"

static void* Giver(void* argument) {
  Shared* const shared = Map();
  Publish(shared);
  shared->value = 1;  // [a]
  return argument;
}

static void* Taker(void* argument) {
  Shared* const shared = Map();
  Await(shared);
  shared->value = 2;  // [b]
  return argument;
}

int main(void) { return RunViews(Giver, Taker); }
