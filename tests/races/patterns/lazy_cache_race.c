// A result kept for later, computed by whoever comes first: the usual excuse, and a race.
// ONE-OF any global:cached a b
// ONE-OF any global:cached b b
// ALSO any a b
// ALSO any b b
// ALSO any b r
// MAY-MISS shared: the places run once in each thread
#include "race.h"

int cached;

static void* User(void* argument) {
  if (cached == 0) {  // [a]
    cached = 42;      // [b]
  }
  Use(cached);  // [r]
  return argument;
}

int main(void) {
  RunTwo(User, User);
  return Done();
}
