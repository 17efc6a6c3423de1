// Memory that read() fills is mapped twice, and is the same whichever view it is told of.
// RACE write-write mapping a b
// RACE write-write mapping c d
// MAY-MISS shared: each place runs once
// TAGS fast
// TSAN-DIFFERS it takes two addresses for two places
#include <sys/mman.h>

#include "race.h"

static char *low, *high;
static int files[2];

static void* Reader(void* argument) {
  Check(read(files[0], low + 8, 8) == 8);    // [a]
  Check(read(files[0], high + 64, 8) == 8);  // [c]
  return argument;
}

static void* Writer(void* argument) {
  high[10] = 1;  // [b]
  low[66] = 1;   // [d]
  return argument;
}

int main(void) {
  const int file = memfd_create("views", 0);
  Check(file >= 0 && ftruncate(file, 4096) == 0);
  char* const one = (char*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  char* const other = (char*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  Check(one != MAP_FAILED && other != MAP_FAILED);
  low = one < other ? one : other;
  high = one < other ? other : one;
  Check(pipe(files) == 0 && write(files[1], "1234567812345678", 16) == 16);
  RunTwo(Reader, Writer);
  return Done();
}
