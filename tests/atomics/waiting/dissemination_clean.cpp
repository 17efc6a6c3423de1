// A dissemination barrier of flags, sense reversed.
// CLEAN
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include "dissemination.h"

int cells[kThreads];

int main() {
  RunNumbered(kThreads, [](int me) {
    Barrier barrier{me};
    for (int i = 0; i < 6; i++) {
      cells[(me + i) % kThreads] = i;
      barrier.Wait();
    }
  });
  return Done();
}
