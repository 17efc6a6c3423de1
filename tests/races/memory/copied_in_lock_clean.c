// What a lock of the program's own guards is copied by one repeated instruction right behind the
// atomic one, and the lock is given back right behind that.
// CLEAN
// TAGS fast
#include "race.h"

enum { kBytes = 256, kRounds = 20 };

static char guarded[kBytes];
static int lock;

// The string instruction wants registers that the compiler may not choose otherwise.
static void Copy(char* to, const char* from) {
  size_t bytes = kBytes;
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

static void* Run(void* argument) {
  char own[kBytes] = {0};
  for (int round = 0; round < kRounds; ++round) {
    while (__sync_lock_test_and_set(&lock, 1)) usleep(10);
    Copy(own, guarded);
    own[round]++;
    Copy(guarded, own);
    __sync_fetch_and_sub(&lock, 1);
  }
  return argument;
}

int main(void) {
  RunTwo(Run, Run);
  return guarded[kRounds - 1] == 2 ? Done() : 1;
}
