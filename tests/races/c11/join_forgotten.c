// C11 threads: a detached thread's write and its creator's.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
// TSAN-DIFFERS it does not know C11 threads
#include <threads.h>

#include "race.h"

int value;

static int Writer(void* argument) {
  (void)argument;
  value = 1;  // [a]
  return 0;
}

int main(void) {
  thrd_t writer;
  Check(thrd_create(&writer, Writer, NULL) == thrd_success);
  thrd_detach(writer);
  value = 2;  // [b]
  Done();
  thrd_exit(0);
}
