// Code that is read-only to the program and written by way of /proc/self/mem, as some just-in-time
// compilers do: what runs is what was written last.
// CLEAN
// BUILD O2
// TAGS fast
#include <fcntl.h>
#include <stdint.h>
#include <sys/uio.h>

#include "written_code.h"

static int file;

static void WriteCode(unsigned char* code, int round) {
  const struct iovec parts[2] = {{code, 2}, {code + 2, kCodeSize - 2}};
  const off_t place = (off_t)(uintptr_t)executable;
  if (round % 3 == 0) {
    Check(pwrite(file, code, kCodeSize, place) == kCodeSize);
    return;
  }
  Check(lseek(file, place, SEEK_SET) == place);
  Check((round % 3 == 1 ? write(file, code, kCodeSize) : writev(file, parts, 2)) == kCodeSize);
}

int main(void) {
  file = open("/proc/self/mem", O_RDWR);
  executable = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Check(file >= 0 && executable != MAP_FAILED);
  RunTwo(Run, Run);
  return 0;
}
