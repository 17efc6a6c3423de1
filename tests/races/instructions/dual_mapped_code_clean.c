// Code that is written where the same memory is mapped once more, as just-in-time compilers do:
// what runs is what was written last.
// CLEAN
// BUILD O2
// TAGS fast
#include "written_code.h"

static unsigned char* writable;

static void WriteCode(unsigned char* code, int round) {
  (void)round;
  memcpy(writable, code, kCodeSize);
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
