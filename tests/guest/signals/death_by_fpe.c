#include "guest.h"

int main(void) {
  NoCore();
  Fact(true, "dividing");
  volatile int zero = 0;
  volatile int one = 1000;
  return one / zero;
}
