// A fiber takes a spin lock on one carrier and gives it back on another one by a plain store.
// CLEAN
// BUILD O0 O2 stripped
// TSAN-DIFFERS it does not know client.h
#include "fibers.h"

int value;
static volatile int lock;
static Fiber fiber;

static void Lock(void) {
  while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE) != 0) usleep(1000);
}

static void Unlock(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }

static void Work(void) {
  Lock();
  value = 1;
  Yield(&fiber, 1);
  value++;
  Unlock();
  Yield(&fiber, 1);
}

static void* Carrier(void* argument) {
  Resume(&fiber, 1);
  return argument;
}

static void* Other(void* argument) {
  Lock();
  value++;
  Unlock();
  return argument;
}

int main(void) {
  const pthread_t idle = StartIdle();
  Prepare(&fiber, Work);
  trapline_fiber_create(&fiber);
  const pthread_t one = RunToEnd(Carrier, NULL);
  const pthread_t two = RunToEnd(Carrier, NULL);
  const pthread_t three = RunToEnd(Other, NULL);
  Join(one);
  Join(two);
  Join(three);
  EndIdle(idle);
  Check(value == 3);
  return Done();
}
