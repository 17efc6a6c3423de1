#include "guest.h"

int main(void) {
  Fact(true, "killing myself");
  kill(getpid(), SIGKILL);
  return 1;
}
