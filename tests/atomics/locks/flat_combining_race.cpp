// Flat combining, and each thread counts once without asking.
// ONE-OF any global:total a b
// ONE-OF any global:total b b
// MAY-MISS shared: who had the page first did so alone
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include "flat_combining.h"

static long total;

static long Add(long argument) {
  return total += argument;  // [a]
}

int main() {
  RunNumbered(3, [](int me) {
    for (int i = 0; i < 10; i++) Use(Request(me, i, Add));
    total++;  // [b]
  });
  return Done();
}
