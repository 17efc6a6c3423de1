// An item is written after it was pushed to a bounded queue.
// RACE any heap a b
// MAY-MISS shared: who had the page first did so alone
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include "waiting_queue.h"

int main() {
  return RunQueue(
      [](int* item) {
        queue.Push(item);
        *item = 3;  // [a]
      },
      [](int* item) {
        *item += 1;  // [b]
      });
}
