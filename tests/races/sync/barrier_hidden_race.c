// A barrier that is looked up in the library by its own handle is hidden on purpose: it lets the
// two accesses meet and does not order them.
// RACE any global:value a b
// MAY-MISS shared: who had the page first did so alone
#include <dlfcn.h>

#include "race.h"

int value;
static pthread_barrier_t barrier;
static int (*wait_at)(pthread_barrier_t*);

static void* First(void* argument) {
  value = 1;  // [a]
  wait_at(&barrier);
  return argument;
}

static void* Second(void* argument) {
  wait_at(&barrier);
  value = 2;  // [b]
  return argument;
}

int main(void) {
  void* const library = dlopen("libpthread.so.0", RTLD_LAZY);
  Check(library != NULL);
  *(void**)&wait_at = dlsym(library, "pthread_barrier_wait");
  Check(wait_at != NULL && pthread_barrier_init(&barrier, NULL, 2) == 0);
  RunTwo(First, Second);
  return Done();
}
