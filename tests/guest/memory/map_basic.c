#include "fault.h"

int main(void) {
  CatchFaults();
  char* p = Map(4 * kPage, PROT_READ | PROT_WRITE);
  bool zero = true;
  for (int i = 0; i < 4 * kPage; ++i) zero = zero && p[i] == 0;
  Fact(zero, "fresh memory is zero");
  memset(p, 'x', 4 * kPage);
  Fact(munmap(p, 4 * kPage) == 0, "unmapped");
  Fact(FAULTS(*(volatile char*)p), "access faults");
  Fact(SegvWas(SEGV_MAPERR, p), "SEGV_MAPERR at the address");
  Fact(munmap(p, 4 * kPage) == 0, "unmapping nothing succeeds");
  Fact(munmap(p + 1, kPage) == -1 && errno == EINVAL, "misaligned munmap is EINVAL");
  Fact(
      mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL,
      "empty mmap is EINVAL");
  Fact(mmap(NULL, kPage, PROT_READ, MAP_PRIVATE, -1, 0) == MAP_FAILED && errno == EBADF,
       "mmap of no file is EBADF");
  Fact(mmap(NULL, kPage, PROT_READ, MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL,
       "neither shared nor private is EINVAL");
  Fact(mmap(NULL, (size_t)1 << 47, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) ==
               MAP_FAILED &&
           errno == ENOMEM,
       "more than the address space is ENOMEM");
  char* q = mmap((void*)0x100000000000, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                 -1, 0);
  Fact(q == (char*)0x100000000000, "a free hint address is taken");
  *q = 1;
  Fact(*q == 1, "and works");
  return Done();
}
