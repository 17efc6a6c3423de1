// The destructors of two threads' keys write one counter.
// RACE write-write global:ended+0 ends ends
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS it does not know C11 threads
#include <threads.h>

#include "race.h"

int ended;
static tss_t key;

static void OnEnd(void* argument) {
  ended = 1;  // [ends]
}

static int Works(void* argument) {
  tss_set(key, &ended);
  return 0;
}

int main(void) {
  thrd_t one, other;
  Check(tss_create(&key, OnEnd) == thrd_success);
  Check(thrd_create(&one, Works, NULL) == thrd_success);
  Check(thrd_create(&other, Works, NULL) == thrd_success);
  thrd_join(one, NULL);
  thrd_join(other, NULL);
  return Done();
}
