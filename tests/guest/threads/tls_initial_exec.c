#include "guest.h"

static __thread int initialised __attribute__((tls_model("initial-exec"))) = 1234;
static __thread int zero __attribute__((tls_model("initial-exec")));
static __thread char aligned[64] __attribute__((aligned(64)));
static int good;

static void* Check(void* argument) {
  const bool fresh = initialised == 1234 && zero == 0 && (uintptr_t)aligned % 64 == 0;
  initialised = zero = (int)(intptr_t)argument;
  for (int i = 0; i < 100; ++i) sched_yield();
  if (fresh && initialised == (int)(intptr_t)argument && zero == initialised) Add(&good, 1);
  return &zero;
}

int main(void) {
  pthread_t threads[8];
  initialised = 5;
  for (intptr_t i = 0; i < 8; ++i) threads[i] = Start(Check, (void*)(i + 100));
  for (int i = 0; i < 8; ++i) pthread_join(threads[i], NULL);
  Fact(good == 8, "8 threads had variables of their own");
  Fact(initialised == 5 && zero == 0, "main's variables are untouched");
  return Done();
}
