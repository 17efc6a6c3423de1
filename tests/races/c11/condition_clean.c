// C11 threads: a condition variable hands over; call_once; a tss destructor runs before the join.
// CLEAN
#include <threads.h>

#include "race.h"

int value;
int ready;
int destroyed;
int once_value;
mtx_t mutex;
cnd_t condition;
tss_t key;
once_flag once = ONCE_FLAG_INIT;

static void Once(void) { once_value = 1; }

static void Destroy(void* block) {
  free(block);
  destroyed = 1;
}

static int Sender(void* argument) {
  (void)argument;
  call_once(&once, Once);
  tss_set(key, malloc(8));
  value = 1;
  mtx_lock(&mutex);
  ready = 1;
  cnd_signal(&condition);
  mtx_unlock(&mutex);
  return 0;
}

int main(void) {
  thrd_t sender;
  mtx_init(&mutex, mtx_plain);
  cnd_init(&condition);
  tss_create(&key, Destroy);
  Check(thrd_create(&sender, Sender, NULL) == thrd_success);
  call_once(&once, Once);
  mtx_lock(&mutex);
  while (!ready) cnd_wait(&condition, &mutex);
  mtx_unlock(&mutex);
  value += once_value;
  thrd_join(sender, NULL);
  return value + destroyed == 3 ? Done() : 1;
}
