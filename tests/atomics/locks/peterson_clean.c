// Peterson's lock with sequentially consistent C11 atomics.
// CLEAN
#include <stdatomic.h>

#include "race.h"

static atomic_int wants[2], turn;
static int value;

static void* Works(void* argument) {
  const long self = (long)argument;
  for (int i = 0; i < 5; i++) {
    atomic_store(&wants[self], 1);
    atomic_store(&turn, (int)(1 - self));
    while (atomic_load(&wants[1 - self]) && atomic_load(&turn) == 1 - self) usleep(100);
    value++;
    atomic_store(&wants[self], 0);
  }
  return NULL;
}

int main(void) {
  const pthread_t first = Start(Works, (void*)0);
  const pthread_t second = Start(Works, (void*)1);
  Join(first);
  Join(second);
  return value == 10 ? Done() : 1;
}
