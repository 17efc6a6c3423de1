// Threads on stacks the program provides, one after the other on the same.
// CLEAN
#include <sys/mman.h>

#include "race.h"

enum { kSize = 1 << 17 };

static void* Works(void* argument) {
  volatile int local[64];
  for (int i = 0; i < 64; i++) local[i] = i;
  Check(local[63] == 63);
  return argument;
}

static void* Another(void* argument) {
  Works(argument);
  usleep(50000);
  return argument;
}

int main(void) {
  const pthread_t other = Start(Another, NULL);
  void* const stack = mmap(NULL, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  Check(pthread_attr_setstack(&attributes, stack, kSize) == 0);
  for (int i = 0; i < 3; i++) {
    pthread_t thread;
    Check(pthread_create(&thread, &attributes, Works, NULL) == 0);
    Join(thread);
    ((volatile char*)stack)[kSize - 4096] = 1;
  }
  Join(other);
  return Done();
}
