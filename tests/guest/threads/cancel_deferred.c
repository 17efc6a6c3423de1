#include "guest.h"

static int cleaned;
static int started;

static void Clean(void* argument) { Add(&cleaned, *(int*)argument); }

static void* Sleeper(void* argument) {
  int one = 1;
  pthread_cleanup_push(Clean, &one);
  Store((int*)argument, 1);
  for (;;) pause();
  pthread_cleanup_pop(0);
  return NULL;
}

static void* Reader(void* argument) {
  int two = 10;
  char byte;
  pthread_cleanup_push(Clean, &two);
  Store(&started, 2);
  if (read(*(int*)argument, &byte, 1) != 0) Store(&started, 3);
  pthread_cleanup_pop(0);
  return NULL;
}

static void* Disabled(void* argument) {
  int old;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
  Store(&started, 4);
  WaitUntil((int*)argument, 1);
  SleepMs(1);
  Store(&started, 5);
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
  pthread_testcancel();
  return NULL;
}

int main(void) {
  void* result;
  pthread_t thread = Start(Sleeper, &started);
  WaitUntil(&started, 1);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  Fact(result == PTHREAD_CANCELED && cleaned == 1, "cancelled in pause, cleaned up");

  int ends[2];
  if (pipe(ends) != 0) return 1;
  thread = Start(Reader, &ends[0]);
  WaitUntil(&started, 2);
  SleepMs(5);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  Fact(result == PTHREAD_CANCELED && cleaned == 11, "cancelled in read, cleaned up");

  int cancelled = 0;
  thread = Start(Disabled, &cancelled);
  WaitUntil(&started, 4);
  pthread_cancel(thread);
  Store(&cancelled, 1);
  pthread_join(thread, &result);
  Fact(started == 5, "nothing happened while cancellation was off");
  Fact(result == PTHREAD_CANCELED, "cancelled by pthread_testcancel afterwards");
  return Done();
}
