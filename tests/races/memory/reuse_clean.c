// A freed block comes back to another thread: no race, though nothing else orders the two.
// CLEAN
// TAGS fast
#include <malloc.h>
#include <sched.h>

#include "race.h"

static void* Worker(void* argument) {
  for (int i = 0; i < 8; i++) {
    int* block = (int*)malloc(2000);
    block[1] = i;
    block[400] = i;
    sched_yield();
    Check(block[1] == i);
    free(block);
    sched_yield();
  }
  return argument;
}

int main(void) {
  mallopt(M_ARENA_MAX, 1);
  RunTwo(Worker, Worker);
  return Done();
}
