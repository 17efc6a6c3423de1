// Code that is given back by madvise: a private mapping of a file has the file's again, anonymous
// memory has zeros, which are an instruction that adds to what RAX points to.
#include "emit.h"
#include "fault.h"

static void* Wait(void* unused) {
  for (;;) pause();
  return unused;
}
static void JumpWithRax(const void* to) { __asm__ volatile("call *%0" : : "a"(to) : "memory"); }

static void Check(void) {
  const int file = memfd_create("code", 0);
  unsigned char code[kFunctionSize];
  Emit(code, 1);
  Fact(ftruncate(file, kPage) == 0 && pwrite(file, code, sizeof code, 0) == sizeof code, "a file");
  unsigned char* const changed = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  Emit(changed, 2);
  mprotect(changed, kPage, PROT_READ | PROT_EXEC);
  Fact(((Function)(void*)changed)() == 2, "the copy's code");
  Fact(madvise(changed, kPage, MADV_DONTNEED) == 0, "given back");
  Fact(((Function)(void*)changed)() == 1, "the file's code");

  unsigned char* const page = Map(kPage, PROT_READ | PROT_WRITE);
  Emit(page, 3);
  mprotect(page, kPage, PROT_READ | PROT_EXEC);
  Fact(((Function)(void*)page)() == 3, "code in anonymous memory");
  Fact(madvise(page, kPage, MADV_DONTNEED) == 0, "given back");
  Fact(FAULTS(JumpWithRax(page)), "zeros fault");
  Fact(SegvWas(SEGV_ACCERR, page) && last_fault.rip == (uintptr_t)page,
       "at their own address, which cannot be written");
  close(file);
}

int main(void) {
  CatchFaults();
  Check();
  Start(Wait, NULL);
  for (int i = 0; i < 3; ++i) Check();
  return Done();
}
