// --untrack=ADDRESS+LENGTH leaves memory out.
// CLEAN
// OPTIONS --untrack=0x200000000000+8192
#include <sys/mman.h>

#include "race.h"

static int* words;

static void* Worker(void* argument) {
  words[3]++;
  return argument;
}

int main(void) {
  words = mmap((void*)0x200000000000, 8192, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (words == MAP_FAILED) return 1;
  RunTwo(Worker, Worker);
  return Done();
}
