#include "guest.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

int main(void) {
  char* p = Map(3 * kPage, PROT_READ | PROT_WRITE);
  p[0] = p[2 * kPage] = 'a';
  munmap(p + kPage, kPage);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  Fact(mmap(p, kPage, PROT_READ, flags, -1, 0) == MAP_FAILED && errno == EEXIST, "taken: EEXIST");
  Fact(mmap(p + kPage, 2 * kPage, PROT_READ, flags, -1, 0) == MAP_FAILED && errno == EEXIST,
       "half taken: EEXIST");
  Fact(mmap(p + kPage, kPage, PROT_READ | PROT_WRITE, flags, -1, 0) == p + kPage,
       "the hole is free");
  Fact(p[0] == 'a' && p[2 * kPage] == 'a', "nothing was replaced");
  return Done();
}
