// Threads cancelled, joined and detached at any moment of their lives.
#include "guest.h"

static int alive;

static void Bury(void* argument) {
  (void)argument;
  Add(&alive, -1);
}

static void* Live(void* argument) {
  Add(&alive, 1);
  pthread_cleanup_push(Bury, NULL);
  for (intptr_t i = 0; i < (intptr_t)argument; ++i) {
    SleepMs(0);
    pthread_testcancel();
    sched_yield();
  }
  pthread_cleanup_pop(1);
  return argument;
}

int main(void) {
  int ended = 0;
  int cancelled = 0;
  for (intptr_t i = 0; i < 100; ++i) {
    pthread_t thread = Start(Live, (void*)(i % 7 * 50));
    if (i % 3 == 0) sched_yield();
    if (i % 2 == 0) pthread_cancel(thread);
    if (i % 5 == 0) {
      pthread_detach(thread);
      continue;
    }
    void* result;
    if (pthread_join(thread, &result) != 0) Fact(false, "joined");
    if (result == PTHREAD_CANCELED) {
      ++cancelled;
    } else {
      ++ended;
    }
  }
  Fact(ended + cancelled == 80, "80 threads joined, ended or cancelled");
  Fact(WaitUntil(&alive, 0), "every thread that began cleaned up");
  return Done();
}
