// Every thread ends by pthread_exit, main first: the process ends with status 0 when the last has
// gone.
#include "guest.h"

static void* Worker(void* argument) {
  SleepMs(20);
  Fact(true, "thread %d ends", (int)(intptr_t)argument);
  return NULL;
}

static void AtExit(void) { Fact(true, "exit handler ran"); }

int main(void) {
  atexit(AtExit);
  pthread_t first = Start(Worker, (void*)1);
  pthread_detach(first);
  pthread_exit(NULL);
}
