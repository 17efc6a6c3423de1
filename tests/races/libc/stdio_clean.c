// Threads that print to one stream and read from another: libc locks them itself.
// CLEAN
#include "race.h"

static FILE* sink;

static void* Printer(void* argument) {
  for (int i = 0; i < 3; i++) {
    fprintf(sink, "line %d of %s\n", i, "three");
    fputs("text\n", sink);
  }
  fflush(sink);
  return argument;
}

int main(void) {
  sink = fopen("/dev/null", "w");
  Check(sink != NULL);
  RunTwo(Printer, Printer);
  fclose(sink);
  return Done();
}
