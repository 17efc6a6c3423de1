// Flat combining: who has the lock does the others' requests.
// CLEAN
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include "flat_combining.h"

static long total;

static long Add(long argument) { return total += argument; }

int main() {
  RunNumbered(3, [](int me) {
    for (int i = 0; i < 10; i++) Use(Request(me, i, Add));
  });
  return Done();
}
