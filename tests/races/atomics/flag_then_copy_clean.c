// Who has seen a flag that an atomic instruction set reads what was written before it, by memcpy
// too: plain loads of the flag acquire.
// CLEAN
#include <string.h>

#include "race.h"

static int flag;
static long data[4];

static void* Producer(void* argument) {
  usleep(20000);
  for (int i = 0; i < 4; i++) data[i] = i;
  int one = 1;
  __asm__ volatile("xchgl %0, %1" : "+r"(one), "+m"(flag)::"memory");
  return argument;
}

static void* Consumer(void* argument) {
  while (*(volatile int*)&flag == 0) {
  }
  long copy[4];
  volatile size_t size = sizeof copy;  // so that it is a call
  memcpy(copy, data, size);
  return copy[3] == 3 ? argument : (void*)copy[3];
}

int main(void) {
  RunTwo(Producer, Consumer);
  return Done();
}
