// The processor's memory model: message passing and store buffering with fences, in real parallel.
#include "guest.h"

static int data;
static int flag;
static int x;
static int y;
static int saw[2];
static pthread_barrier_t barrier;
static int wrong;

static void* Other(void* argument) {
  for (int i = 1; i <= 2000; ++i) {
    pthread_barrier_wait(&barrier);
    while (__atomic_load_n(&flag, __ATOMIC_ACQUIRE) != i) {
      if (i % 64 == 0) sched_yield();
    }
    if (__atomic_load_n(&data, __ATOMIC_RELAXED) != i) Add(&wrong, 1);
    pthread_barrier_wait(&barrier);
    __atomic_store_n(&y, i, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    saw[1] = __atomic_load_n(&x, __ATOMIC_RELAXED);
    pthread_barrier_wait(&barrier);
  }
  return argument;
}

int main(void) {
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_t thread = Start(Other, NULL);
  for (int i = 1; i <= 2000; ++i) {
    pthread_barrier_wait(&barrier);
    __atomic_store_n(&data, i, __ATOMIC_RELAXED);
    __atomic_store_n(&flag, i, __ATOMIC_RELEASE);
    pthread_barrier_wait(&barrier);
    __atomic_store_n(&x, i, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    saw[0] = __atomic_load_n(&y, __ATOMIC_RELAXED);
    pthread_barrier_wait(&barrier);
    if (saw[0] != i && saw[1] != i) Add(&wrong, 1);
  }
  pthread_join(thread, NULL);
  Fact(wrong == 0, "2000 messages and 2000 fenced exchanges in order");
  return Done();
}
