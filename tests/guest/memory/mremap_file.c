// Moving a shared file mapping keeps it a mapping of the same file.
#include "guest.h"

int main(void) {
  const int fd = OpenTemporary();
  if (ftruncate(fd, 8 * kPage) != 0) return 1;
  char* p = mmap(NULL, 2 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 2 * kPage);
  p[0] = 'a';
  Map(kPage, PROT_NONE);
  char* q = mremap(p, 2 * kPage, 4 * kPage, MREMAP_MAYMOVE);
  Fact(q != MAP_FAILED && q[0] == 'a', "grown");
  q[3 * kPage] = 'b';
  char byte = 0;
  Fact(pread(fd, &byte, 1, 2 * kPage) == 1 && byte == 'a', "first page in the file");
  Fact(pread(fd, &byte, 1, 5 * kPage) == 1 && byte == 'b', "last page in the file");
  // old_size 0: a second mapping of the same pages.
  char* copy = mremap(q, 0, 4 * kPage, MREMAP_MAYMOVE);
  Fact(copy != MAP_FAILED && copy != q && copy[3 * kPage] == 'b', "duplicated by an old size of 0");
  copy[1] = 'c';
  Fact(q[1] == 'c', "both show the same page");
  return Done();
}
