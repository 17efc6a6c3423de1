// Without debug info: to wait for one thread orders nothing that another one does.
// RACE write-write - a b
// BUILD gcc-O2-nodebug clang-O2-nodebug stripped
// MAY-MISS shared: each place runs once
// MAY-MISS write-shared: each place runs once
// TAGS fast
#include <stdatomic.h>

#include "race.h"

static atomic_int ready;
int value;

static void* Signals(void* argument) {
  atomic_store_explicit(&ready, 1, memory_order_release);
  return argument;
}

static void* Writes(void* argument) {
  value = 1;  // [a]
  return argument;
}

static void* Waits(void* argument) {
  while (!atomic_load_explicit(&ready, memory_order_acquire)) usleep(100);
  value = 2;  // [b]
  return argument;
}

int main(void) {
  const pthread_t writes = Start(Writes, NULL);
  RunTwo(Waits, Signals);
  Join(writes);
  return Done();
}
