// A thread reads many words without synchronising; meanwhile the other one, which has written what
// both write, ends.
// RACE write-write global:last a b
// TAGS fast
// OPTIONS --hot-after=1000000000
// MAY-MISS shared: it runs natively until a page is shared
// MAY-MISS write-shared: it runs natively until a page is shared
#include "race.h"

enum { kWords = 10000 };

static long table[kWords];
static volatile int last;

static void* Reader(void* argument) {
  long sum = 0;
  for (int i = 0; i < kWords; i++) sum += table[i];
  Use(sum);
  usleep(200000);
  last = 1;  // [a]
  return argument;
}

static void* Writer(void* argument) {
  usleep(100000);
  last = 2;  // [b]
  return argument;
}

int main(void) {
  for (int i = 0; i < kWords; i++) table[i] = i;
  RunTwo(Reader, Writer);
  return Done();
}
