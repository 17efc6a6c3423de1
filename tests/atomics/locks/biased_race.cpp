// A biased lock, and both count once more after they gave it back.
// ONE-OF any global:value b a2
// ONE-OF any global:value b b2
// ONE-OF any global:value a b2
// MAY-MISS shared: who had the page first did so alone
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include "biased.h"

long value;

int main() {
  return RunBiased(
      [] {
        for (int i = 0; i < 20; i++) {
          OwnerEnter();
          value++;  // [a]
          OwnerLeave();
        }
        value++;  // [b]
      },
      [] {
        for (int i = 0; i < 5; i++) {
          OtherEnter();
          value++;  // [a2]
          OtherLeave();
        }
        value++;  // [b2]
      });
}
