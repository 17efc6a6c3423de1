// A program that was started by execve maps the memory of who started it, only to read; the first
// of the two has unmapped it by then.
// CLEAN
// SHARED 1
// SAYS trapline: memfd 'handed on' (4096 bytes) is shared by processes
// FLAGS -D_GNU_SOURCE
#include <sys/mman.h>
#include <sys/wait.h>

#include "race.h"

static volatile int* Map(int file, int protection) {
  void* const mapped = mmap(NULL, 4096, protection, MAP_SHARED, file, 0);
  Check(mapped != MAP_FAILED);
  return mapped;
}

int main(int count, char** arguments) {
  if (count > 1) return *Map(atoi(arguments[1]), PROT_READ) == 7 ? 0 : 1;
  const int file = memfd_create("handed on", 0);
  Check(file >= 0 && ftruncate(file, 4096) == 0);
  volatile int* const value = Map(file, PROT_READ | PROT_WRITE);
  *value = 7;
  Check(munmap((void*)value, 4096) == 0);
  const pid_t child = fork();
  Check(child >= 0);
  if (child == 0) {
    char number[16];
    snprintf(number, sizeof number, "%d", file);
    execl("/proc/self/exe", arguments[0], number, (char*)NULL);
    _exit(98);
  }
  int status;
  Check(waitpid(child, &status, 0) == child && status == 0);
  return Done();
}
