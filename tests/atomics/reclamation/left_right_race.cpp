// Left-right, but readers read after they have counted themselves out.
// RACE any global:data r w
// MAY-MISS shared: who had the page first did so alone
#include "left_right.h"

int main() {
  return RunReaders(
      [] {
        auto& mine = Enter();
        const int at = side.load();
        Leave(mine);
        Use(data[at]);  // [r]
      },
      [](long& instance) {
        instance++;  // [w]
      });
}
