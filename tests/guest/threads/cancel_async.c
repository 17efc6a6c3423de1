#include "guest.h"

static int started;
static int cleaned;
static volatile unsigned long spins;

static void Clean(void* argument) { Store((int*)argument, 1); }

static void* Spin(void* argument) {
  (void)argument;
  int old;
  pthread_cleanup_push(Clean, &cleaned);
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
  Store(&started, 1);
  for (;;) ++spins;
  pthread_cleanup_pop(0);
  return NULL;
}

int main(void) {
  for (int i = 0; i < 10; ++i) {
    started = cleaned = 0;
    pthread_t thread = Start(Spin, NULL);
    WaitUntil(&started, 1);
    pthread_cancel(thread);
    void* result;
    pthread_join(thread, &result);
    if (result != PTHREAD_CANCELED || cleaned != 1)
      Fact(false, "cancelled in a loop without calls");
  }
  Fact(true, "10 threads cancelled in a loop without calls");
  return Done();
}
