// mtx_timedlock, mtx_trylock and cnd_timedwait; a recursive timed mutex.
// CLEAN
// TSAN-DIFFERS it does not know C11 threads
#include <threads.h>
#include <time.h>

#include "race.h"

int value, ready;
static mtx_t mutex;
static cnd_t condition;

static struct timespec Later(void) {
  struct timespec deadline;
  timespec_get(&deadline, TIME_UTC);
  deadline.tv_sec += 60;
  return deadline;
}

static int Sets(void* argument) {
  const struct timespec deadline = Later();
  Check(mtx_timedlock(&mutex, &deadline) == thrd_success);
  Check(mtx_trylock(&mutex) == thrd_success);
  value = 1;
  ready = 1;
  mtx_unlock(&mutex);
  cnd_broadcast(&condition);
  mtx_unlock(&mutex);
  return 0;
}

static int Waits(void* argument) {
  const struct timespec deadline = Later();
  mtx_lock(&mutex);
  while (!ready) Check(cnd_timedwait(&condition, &mutex, &deadline) == thrd_success);
  value++;
  mtx_unlock(&mutex);
  return 0;
}

int main(void) {
  thrd_t one, other;
  Check(mtx_init(&mutex, mtx_timed | mtx_recursive) == thrd_success);
  Check(cnd_init(&condition) == thrd_success);
  Check(thrd_create(&one, Waits, NULL) == thrd_success);
  Check(thrd_create(&other, Sets, NULL) == thrd_success);
  thrd_join(one, NULL);
  thrd_join(other, NULL);
  mtx_destroy(&mutex);
  cnd_destroy(&condition);
  return value == 2 ? Done() : 1;
}
