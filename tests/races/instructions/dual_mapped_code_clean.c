// Code that is written where the same memory is mapped once more, as just-in-time compilers do:
// what runs is what was written last.
// CLEAN
// BUILD O2
// TAGS fast
#include <string.h>
#include <sys/mman.h>

#include "race.h"

enum { kRounds = 300 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned char *writable, *executable;

static void* Run(void* argument) {
  for (int round = 0; round < kRounds; round++) {
    const unsigned char code[] = {0xb8, (unsigned char)round, (unsigned char)(round >> 8), 0, 0,
                                  0xc3};  // mov $round,%eax; ret
    Check(pthread_mutex_lock(&mutex) == 0);
    memcpy(writable, code, sizeof code);
    int (*function)(void);
    memcpy(&function, &executable, sizeof function);
    Check(function() == round);
    Check(pthread_mutex_unlock(&mutex) == 0);
  }
  return argument;
}

int main(void) {
  const int file = memfd_create("code", 0);
  Check(file >= 0 && ftruncate(file, 4096) == 0);
  writable = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  executable = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
  Check(writable != MAP_FAILED && executable != MAP_FAILED);
  RunTwo(Run, Run);
  return 0;
}
