// close_range and dup2 close what others read to the end.
// CLEAN
// FLAGS -D_GNU_SOURCE
// TSAN-DIFFERS it does not know them
#include "race.h"

static int ends[2][2], replacement;
int values[2];

static void* Closes(void* argument) {
  values[0] = 1;
  Check(close_range((unsigned)ends[0][1], (unsigned)ends[0][1], 0) == 0);
  values[1] = 1;
  Check(dup2(replacement, ends[1][1]) == ends[1][1]);
  return argument;
}

static void* Reads(void* argument) {
  for (int i = 0; i < 2; i++) {
    char byte;
    Check(read(ends[i][0], &byte, 1) == 0);
    values[i]++;
  }
  return argument;
}

int main(void) {
  Check(pipe(ends[0]) == 0 && pipe(ends[1]) == 0);
  replacement = dup(0);
  RunTwo(Closes, Reads);
  return values[0] + values[1] == 4 ? Done() : 1;
}
