// A reader-writer lock of the program's own, told of by valgrind's client requests.
// CLEAN
#include "race.h"
#include "valgrind_requests.h"

static int word;  // how many readers, -1 while written
int value;

static void ReadLock(void) {
  for (;;) {
    const int seen = __atomic_load_n(&word, __ATOMIC_SEQ_CST);
    int expected = seen;
    if (seen >= 0 && __atomic_compare_exchange_n(&word, &expected, seen + 1, 0, __ATOMIC_SEQ_CST,
                                                 __ATOMIC_SEQ_CST))
      break;
    usleep(100);
  }
  Request(kRwlockAcquired, &word, 0);
}

static void WriteLock(void) {
  int expected = 0;
  while (
      !__atomic_compare_exchange_n(&word, &expected, -1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    expected = 0;
    usleep(100);
  }
  Request(kRwlockAcquired, &word, 1);
}

static void* Reads(void* argument) {
  for (int i = 0; i < 5; i++) {
    ReadLock();
    Use(value);
    Request(kRwlockReleased, &word, 0);
    __atomic_fetch_sub(&word, 1, __ATOMIC_SEQ_CST);
  }
  return argument;
}

static void* Writes(void* argument) {
  for (int i = 0; i < 5; i++) {
    WriteLock();
    value++;
    Request(kRwlockReleased, &word, 0);
    __atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
  }
  return argument;
}

int main(void) {
  Request(kIgnoreRange, &word, sizeof word);
  RunTwo(Reads, Writes);
  return Done();
}
