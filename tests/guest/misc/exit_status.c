#include "guest.h"

static void First(void) { Fact(true, "registered first, runs last"); }
static void Second(void) { Fact(true, "registered second, runs first"); }
__attribute__((constructor)) static void Before(void) { Fact(true, "constructor"); }
__attribute__((destructor)) static void After(void) { Fact(true, "destructor"); }

int main(void) {
  atexit(First);
  atexit(Second);
  printf("buffered output, flushed by exit\n");
  exit(200);
}
