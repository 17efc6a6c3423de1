// What is stored by a plain mov on pages that a thread has to itself orders who reads it there,
// though nobody has seen the store: debug info or the source tells that there may be such.
// CLEAN
// BUILD gcc-O2 clang-O2
// SECONDS 60
#include "pages_lost.h"

static struct Apart apart, flag;

static void* First(void* argument) {
  apart.result = 1;
  flag.after[0] = 1;  // its own page
  Work(0);
  __atomic_store_n(&flag.result, 1, __ATOMIC_RELEASE);
  usleep(600000);
  return argument;
}

static void* Second(void* argument) {
  usleep(300000);
  while (!__atomic_load_n(&flag.result, __ATOMIC_ACQUIRE)) usleep(1000);
  Work(1);
  Use(apart.result);
  return argument;
}

int main(void) {
  RunTwo(First, Second);
  return 0;
}
