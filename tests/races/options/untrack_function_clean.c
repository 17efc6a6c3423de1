// --untrack=FUNCTION: what its code does, inlined or not, does not count.
// CLEAN
// OPTIONS --untrack=Count --untrack=Add
#include "race.h"

int counter;
int total;

static inline void Count(void) { counter++; }

__attribute__((noinline)) static void Add(int value) { total += value; }

static void* Worker(void* argument) {
  Count();
  Add(2);
  return argument;
}

int main(void) {
  RunTwo(Worker, Worker);
  return Done();
}
