// What call_once initialised is seen by every caller.
// CLEAN
// BUILD O0 O2 static
// TSAN-DIFFERS it does not know C11 threads
#include <threads.h>

#include "race.h"

int value;
static once_flag flag = ONCE_FLAG_INIT;

static void Initialise(void) { value = 1; }

static int Reads(void* argument) {
  call_once(&flag, Initialise);
  return value - 1;
}

int main(void) {
  thrd_t one, other;
  int first = 1, second = 1;
  Check(thrd_create(&one, Reads, NULL) == thrd_success);
  Check(thrd_create(&other, Reads, NULL) == thrd_success);
  thrd_join(one, &first);
  thrd_join(other, &second);
  return first + second == 0 ? Done() : 1;
}
