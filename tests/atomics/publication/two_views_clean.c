// A flag and its data in a memfd, each thread with a mapping of its own.
// CLEAN
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include "two_views.h"

static void* Giver(void* argument) {
  Shared* const shared = Map();
  shared->value = 1;
  Publish(shared);
  return argument;
}

static void* Taker(void* argument) {
  Shared* const shared = Map();
  Await(shared);
  shared->value = 2;
  return argument;
}

int main(void) { return RunViews(Giver, Taker); }
