// A child inherits shared memory and does not touch it; both read a file that both have mapped; and
// memory that is mapped twice by one process is its own.
// CLEAN
// FLAGS -D_GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "race.h"

static volatile char* Map(int file, int protection) {
  void* const mapped =
      mmap(NULL, 4096, protection, MAP_SHARED | (file < 0 ? MAP_ANONYMOUS : 0), file, 0);
  Check(mapped != MAP_FAILED);
  return mapped;
}

int main(void) {
  volatile char* const inherited = Map(-1, PROT_READ | PROT_WRITE);
  inherited[0] = 1;
  const int twice = memfd_create("twice", 0);
  Check(twice >= 0 && ftruncate(twice, 4096) == 0);
  Map(twice, PROT_READ | PROT_WRITE)[0] = 1;
  Map(twice, PROT_READ | PROT_WRITE)[1] = 1;
  const int file = open("/proc/self/exe", O_RDONLY);
  Check(file >= 0);
  volatile char* const text = Map(file, PROT_READ);
  Check(text[0] == 0x7f);
  const pid_t child = fork();
  Check(child >= 0);
  if (child == 0) _exit(text[0] == 0x7f ? 0 : 1);
  int status;
  Check(waitpid(child, &status, 0) == child && status == 0);
  return Done();
}
