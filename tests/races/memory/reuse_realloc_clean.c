// realloc and calloc: what moves, grows and shrinks belongs to the caller alone.
// CLEAN
#include <malloc.h>
#include <sched.h>

#include "race.h"

static void* Worker(void* argument) {
  for (int i = 0; i < 4; i++) {
    char* block = (char*)calloc(3, 500);
    block[1499] = 1;
    block = (char*)realloc(block, 6000);
    block[5999] = 2;
    sched_yield();
    block = (char*)realloc(block, 1200);
    block[1199] = 3;
    Check(block[0] == 0);
    free(block);
    sched_yield();
    void* aligned;
    Check(posix_memalign(&aligned, 256, 1500) == 0);
    *(char*)aligned = 1;
    free(aligned);
  }
  return argument;
}

int main(void) {
  mallopt(M_ARENA_MAX, 1);
  RunTwo(Worker, Worker);
  return Done();
}
