// Protections and mappings after fork belong to each process alone.
#include "fault.h"

int main(void) {
  CatchFaults();
  volatile char* p = Map(2 * kPage, PROT_READ | PROT_WRITE);
  volatile char* shared =
      mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  p[0] = p[kPage] = 1;
  const pid_t child = fork();
  if (child == 0) {
    mprotect((void*)p, kPage, PROT_READ);
    munmap((void*)(p + kPage), kPage);
    Fact(FAULTS(p[0] = 2) && SegvWas(SEGV_ACCERR, p), "the child's page is read-only");
    Fact(FAULTS(p[kPage] = 2) && SegvWas(SEGV_MAPERR, p + kPage), "the child's other page is gone");
    shared[0] = 9;
    mprotect((void*)shared, kPage, PROT_NONE);
    _exit(Done());
  }
  Fact(Reap(child) == 0, "child was content");
  Fact(!FAULTS(p[0] = p[kPage] = 3), "the parent's pages are as they were");
  Fact(shared[0] == 9, "the shared page has the child's value");
  char* dontfork = Map(kPage, PROT_READ | PROT_WRITE);
  dontfork[0] = 1;
  char* wiped = Map(kPage, PROT_READ | PROT_WRITE);
  wiped[0] = 1;
  Fact(madvise(dontfork, kPage, MADV_DONTFORK) == 0 && madvise(wiped, kPage, 18) == 0,
       "MADV_DONTFORK and MADV_WIPEONFORK");
  const pid_t second = fork();
  if (second == 0) {
    const bool gone = FAULTS((void)*(volatile char*)dontfork) && SegvWas(SEGV_MAPERR, dontfork);
    _exit(gone && *(volatile char*)wiped == 0 ? 0 : 1);
  }
  Fact(Reap(second) == 0, "gone and wiped in the child");
  Fact(dontfork[0] == 1 && wiped[0] == 1, "but not in the parent");
  return Done();
}
