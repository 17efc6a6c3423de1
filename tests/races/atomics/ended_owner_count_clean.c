// A thread drops its reference and ends, without a join. Much later hot code drops the last one.
// CLEAN
#include <stdatomic.h>

#include "race.h"

struct Object {
  atomic_int count;
  int value;
};

struct Object* object;
atomic_int worker;
volatile int own[100000];

static void* Worker(void* argument) {
  atomic_store(&worker, ThreadId());
  object->value = 1;
  atomic_fetch_sub_explicit(&object->count, 1, memory_order_release);
  return argument;
}

static void* Waits(void* argument) {
  pause();
  return argument;
}

int main(void) {
  object = aligned_alloc(4096, 8192);  // on a page of its own
  atomic_init(&object->count, 2);
  Start(Waits, NULL);  // there is never one thread alone
  pthread_detach(Start(Worker, NULL));
  pid_t id;
  while ((id = atomic_load(&worker)) == 0) usleep(1000);
  WaitUntilEnded(id);
  for (int i = 0; i < 100000; i++) own[i] = i;
  if (atomic_fetch_sub_explicit(&object->count, 1, memory_order_acq_rel) == 1) free(object);
  return Done();
}
