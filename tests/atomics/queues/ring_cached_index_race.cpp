// An item is written after it was pushed to a ring.
// RACE any - a b
// MAY-MISS shared: who had the page first did so alone
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include "ring_cached_index.h"

int main() {
  return RunRing(
      [](int* item) {
        Push(item);
        *item = 3;  // [a]
      },
      [](int* item) {
        *item += 1;  // [b]
      });
}
