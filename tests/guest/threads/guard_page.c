// A thread runs over its guard page: death by SIGSEGV.
#include "guest.h"

static int Recurse(volatile char* above) {
  volatile char frame[1024];
  frame[0] = above[0];
  if (frame[0] != 0) return 0;
  return Recurse(frame) + frame[0];
}

static void* Overflow(void* argument) {
  volatile char start[1] = {0};
  return (void*)(intptr_t)(Recurse(start) + (argument != NULL));
}

int main(void) {
  NoCore();
  Fact(true, "overflowing");
  pthread_join(Start(Overflow, NULL), NULL);
  Fact(false, "survived");
  return 1;
}
