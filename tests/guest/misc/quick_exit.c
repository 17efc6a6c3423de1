#include "guest.h"

static void AtExit(void) { Fact(false, "exit handler ran"); }
static void AtQuickExit(void) { Fact(true, "quick_exit handler ran"); }

int main(void) {
  atexit(AtExit);
  at_quick_exit(AtQuickExit);
  quick_exit(17);
}
