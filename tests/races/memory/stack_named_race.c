// A variable of a function further out on the stack, as which it is reported.
// RACE write-write stack:totals a b
// SAYS trapline: data race (write-write) on 'totals.second' on the stack of thread 0 (initial)
// MAY-MISS shared: each place runs once
#include "race.h"

struct Totals {
  int first, second;
};

static void* First(void* argument) {
  ((struct Totals*)argument)->second = 1;  // [a]
  return NULL;
}

static void* Second(void* argument) {
  ((struct Totals*)argument)->second = 2;  // [b]
  return NULL;
}

static __attribute__((noinline)) void Give(struct Totals* totals, int* other) {
  const pthread_t first = Start(First, totals);
  const pthread_t second = Start(Second, totals);
  *other = 1;
  Join(first);
  Join(second);
}

static __attribute__((noinline)) int Count(void) {
  int other = 0;
  struct Totals totals = {0, 0};
  Give(&totals, &other);
  return totals.second + other;
}

int main(void) { return Count() > 0 ? Done() : 1; }
