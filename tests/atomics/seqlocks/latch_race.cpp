// A latch protects its copies, not what is written and read besides.
// RACE any - w r
// MAY-MISS shared: who had the page first did so alone
#include "latch.h"

long plain;

int main() {
  return RunLatch(
      [](long value) {
        Write(value);
        plain = value;  // [w]
      },
      [] {
        Use(Read());
        Use(plain);  // [r]
      });
}
