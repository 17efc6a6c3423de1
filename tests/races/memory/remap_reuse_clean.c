// An address unmapped by one thread and mapped anew by another is new memory.
// CLEAN
#include <sched.h>
#include <sys/mman.h>

#include "race.h"

static void* Worker(void* argument) {
  for (int i = 0; i < 6; i++) {
    int* words = (int*)mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    Check(words != MAP_FAILED && words[0] == 0);
    words[0] = i;
    words[1024] = i;
    sched_yield();
    munmap(words, 8192);
    sched_yield();
  }
  return argument;
}

int main(void) {
  RunTwo(Worker, Worker);
  return Done();
}
