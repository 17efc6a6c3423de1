// C11 threads: one of them forgets the mutex.
// RACE any global:counter a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS it does not know C11 threads
#include <threads.h>

#include "race.h"

int counter;
mtx_t mutex;

static int Careful(void* argument) {
  (void)argument;
  mtx_lock(&mutex);
  counter++;  // [a]
  mtx_unlock(&mutex);
  return 0;
}

static int Careless(void* argument) {
  (void)argument;
  counter++;  // [b]
  return 0;
}

int main(void) {
  thrd_t careful;
  thrd_t careless;
  mtx_init(&mutex, mtx_plain);
  Check(thrd_create(&careful, Careful, NULL) == thrd_success);
  Check(thrd_create(&careless, Careless, NULL) == thrd_success);
  thrd_join(careful, NULL);
  thrd_join(careless, NULL);
  return Done();
}
