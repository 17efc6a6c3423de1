// A dissemination barrier that all leave out once.
// RACE any global:cells a a
// MAY-MISS shared: who had the page first did so alone
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include "dissemination.h"

int cells[kThreads];

int main() {
  RunNumbered(kThreads, [](int me) {
    Barrier barrier{me};
    for (int i = 0; i < 6; i++) {
      cells[(me + i) % kThreads] = i;  // [a]
      if (i != 3) barrier.Wait();
    }
  });
  return Done();
}
