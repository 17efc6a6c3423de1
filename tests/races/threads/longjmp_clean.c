// longjmp out of a function that holds the lock; given back by the one that is jumped to.
// CLEAN
// BUILD O0 O2 static
#include <setjmp.h>

#include "race.h"

int value;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void Fails(jmp_buf target) {
  pthread_mutex_lock(&mutex);
  value++;
  longjmp(target, 1);
}

static void* Works(void* argument) {
  jmp_buf here;
  for (volatile int i = 0; i < 5; i++) {
    if (setjmp(here) == 0) Fails(here);
    value++;
    pthread_mutex_unlock(&mutex);
  }
  return argument;
}

int main(void) {
  RunTwo(Works, Works);
  return value == 20 ? Done() : 1;
}
