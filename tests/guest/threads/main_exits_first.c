// main ends by pthread_exit; the process goes on and the last thread's exit() decides the status.
#include "guest.h"

static void* Last(void* argument) {
  pthread_join(*(pthread_t*)argument, NULL);
  Fact(true, "main was joined, the process goes on");
  exit(5);
}

int main(void) {
  static pthread_t self;
  self = pthread_self();
  Start(Last, &self);
  pthread_exit(NULL);
}
