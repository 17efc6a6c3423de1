// Plainly initialised before there are threads, plainly read when they have ended.
// CLEAN
#include <stdatomic.h>
#include <string.h>

#include "race.h"

static struct {
  int value;
  atomic_int counter;
} shared;

static void* Works(void* argument) {
  atomic_fetch_add(&shared.counter, 1);
  return argument;
}

int main(void) {
  memset(&shared, 0, Opaque(sizeof shared));
  RunTwo(Works, Works);
  int counter = 0;
  memcpy(&counter, &shared.counter, Opaque(sizeof counter));
  return counter == 2 ? Done() : 1;
}
