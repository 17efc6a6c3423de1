// A biased lock: its owner takes it by relaxed stores, others by membarrier.
// CLEAN
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include "biased.h"

long value;

int main() {
  return RunBiased(
      [] {
        for (int i = 0; i < 20; i++) {
          OwnerEnter();
          value++;
          OwnerLeave();
        }
      },
      [] {
        for (int i = 0; i < 5; i++) {
          OtherEnter();
          value++;
          OtherLeave();
        }
      });
}
