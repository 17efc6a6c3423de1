#include "guest.h"

int main(void) {
  const int fd = OpenTemporary();
  if (write(fd, "original", 9) != 9 || ftruncate(fd, 3 * kPage) != 0) return 1;
  char* p = mmap(NULL, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  Fact(strcmp(p, "original") == 0, "the file's contents");
  p[0] = 'O';
  char byte = 0;
  Fact(pread(fd, &byte, 1, 0) == 1 && byte == 'o', "a store does not reach the file");
  if (pwrite(fd, "X", 1, 1) != 1) return 1;
  Fact(p[0] == 'O', "the private page stays");
  if (pwrite(fd, "later", 5, kPage) != 5) return 1;
  Fact(memcmp(p + kPage, "later", 5) == 0, "an untouched page shows the file");
  madvise(p, kPage, MADV_DONTNEED);
  Fact(p[0] == 'o' && p[1] == 'X', "MADV_DONTNEED brings the file's page back");
  return Done();
}
