// A file mapped by the program.
// RACE write-write mapping a b
// MAY-MISS shared: each place runs once
#include <fcntl.h>
#include <sys/mman.h>

#include "race.h"

static int* words;

static void* First(void* argument) {
  words[100] = 1;  // [a]
  return argument;
}

static void* Second(void* argument) {
  words[100] = 2;  // [b]
  return argument;
}

int main(void) {
  char path[] = "/tmp/trapline-races-XXXXXX";
  const int file = mkstemp(path);
  Check(file >= 0 && unlink(path) == 0 && ftruncate(file, 4096) == 0);
  words = (int*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  Check(words != MAP_FAILED);
  RunTwo(First, Second);
  return Done();
}
