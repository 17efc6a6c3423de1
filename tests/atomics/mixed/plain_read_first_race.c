// A plain read surely before another thread's first atomic instruction on the word, and not
// ordered.
// RACE atomic-plain global:counter a b
// MAY-MISS shared: each place runs once
// LIMIT nodebug: __atomic_load_n would be the same mov
#include "race.h"

int counter;
static pid_t reader;

static void* Careless(void* argument) {
  __atomic_store_n(&reader, ThreadId(), __ATOMIC_RELAXED);
  Use(counter);  // [b]
  return argument;
}

static pid_t Reader(void) { return __atomic_load_n(&reader, __ATOMIC_RELAXED); }

int main(void) {
  const pthread_t thread = Start(Careless, NULL);
  while (Reader() == 0) usleep(100);
  WaitUntilEnded(Reader());
  __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST);  // [a]
  Join(thread);
  return Done();
}
