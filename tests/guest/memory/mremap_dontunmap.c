#include "fault.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

int main(void) {
  char* from = Map(2 * kPage, PROT_READ | PROT_WRITE);
  strcpy(from, "contents");
  char* to = mremap(from, 2 * kPage, 2 * kPage, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
  if (to == MAP_FAILED && errno == EINVAL) Skip("no MREMAP_DONTUNMAP");
  Fact(to != from && strcmp(to, "contents") == 0, "contents moved");
  Fact(from[0] == 0 && from[7] == 0, "the old place is mapped and empty");
  from[0] = 'x';
  Fact(to[0] == 'c', "the two are apart");
  return Done();
}
