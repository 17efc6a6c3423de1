// A barrier by sense reversal.
// CLEAN
#include "sense_barrier.h"

static int values[2];

int main() {
  RunNumbered(2, [](int self) {
    bool own = false;
    for (int round = 1; round <= 3; round++) {
      values[self] = round;
      Meet(own);
      Check(values[1 - self] == round);
      Meet(own);
    }
  });
  return Done();
}
