// Code that is read-only to the program and written by way of /proc/self/mem, as some just-in-time
// compilers do: what runs is what was written last.
// CLEAN
// BUILD O2
// TAGS fast
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "race.h"

enum { kRounds = 300, kSize = 6 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned char* executable;
static int file;

static void* Run(void* argument) {
  for (int round = 0; round < kRounds; round++) {
    unsigned char code[kSize] = {0xb8, (unsigned char)round, (unsigned char)(round >> 8), 0, 0,
                                 0xc3};  // mov $round,%eax; ret
    const struct iovec parts[2] = {{code, 2}, {code + 2, kSize - 2}};
    Check(pthread_mutex_lock(&mutex) == 0);
    const off_t place = (off_t)(uintptr_t)executable;
    if (round % 3 == 0) {
      Check(pwrite(file, code, kSize, place) == kSize);
    } else {
      Check(lseek(file, place, SEEK_SET) == place);
      Check((round % 3 == 1 ? write(file, code, kSize) : writev(file, parts, 2)) == kSize);
    }
    int (*function)(void);
    memcpy(&function, &executable, sizeof function);
    Check(function() == round);
    Check(pthread_mutex_unlock(&mutex) == 0);
  }
  return argument;
}

int main(void) {
  file = open("/proc/self/mem", O_RDWR);
  executable = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Check(file >= 0 && executable != MAP_FAILED);
  RunTwo(Run, Run);
  return 0;
}
