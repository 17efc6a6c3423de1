// C11 threads: plain, recursive and timed mutexes.
// CLEAN
#include <threads.h>
#include <time.h>

#include "race.h"

int counters[3];
mtx_t plain;
mtx_t recursive;
mtx_t timed;

static int Adder(void* argument) {
  (void)argument;
  mtx_lock(&plain);
  counters[0]++;
  mtx_unlock(&plain);
  mtx_lock(&recursive);
  while (mtx_trylock(&recursive) != thrd_success) thrd_yield();
  counters[1]++;
  mtx_unlock(&recursive);
  counters[1]++;
  mtx_unlock(&recursive);
  struct timespec end;
  timespec_get(&end, TIME_UTC);
  end.tv_sec += 20;
  Check(mtx_timedlock(&timed, &end) == thrd_success);
  counters[2]++;
  mtx_unlock(&timed);
  return 5;
}

int main(void) {
  thrd_t threads[2];
  mtx_init(&plain, mtx_plain);
  mtx_init(&recursive, mtx_plain | mtx_recursive);
  mtx_init(&timed, mtx_timed);
  for (int i = 0; i < 2; i++) Check(thrd_create(&threads[i], Adder, NULL) == thrd_success);
  int sum = 0;
  for (int i = 0; i < 2; i++) {
    int result;
    thrd_join(threads[i], &result);
    sum += result;
  }
  mtx_destroy(&plain);
  return sum + counters[0] + counters[1] + counters[2] == 18 ? Done() : 1;
}
