// One file mapped twice: a lock in it, taken by one view and given back by the other, is one lock;
// and memory that is mapped where a view was is other memory.
// CLEAN
// TSAN-DIFFERS it takes two addresses for two places
#include <sys/mman.h>

#include "race.h"

static int *one_view, *other_view;
static volatile int* volatile lock_views[2];
static int turn;

static void* Worker(void* argument) {
  for (int i = 0; i < 20; i++) {
    while (__atomic_exchange_n(lock_views[i % 2], 1, __ATOMIC_ACQUIRE) != 0) sched_yield();
    one_view[8]++;
    other_view[8]++;
    turn++;
    __atomic_store_n(lock_views[1 - i % 2], 0, __ATOMIC_RELEASE);
  }
  return argument;
}

int main(void) {
  const int file = memfd_create("views", 0);
  Check(file >= 0 && ftruncate(file, 4096) == 0);
  one_view = (int*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  other_view = (int*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  Check(one_view != MAP_FAILED && other_view != MAP_FAILED);
  lock_views[0] = one_view;
  lock_views[1] = other_view;
  RunTwo(Worker, Worker);
  Check(one_view[8] == 80 && turn == 40);
  return Done();
}
