#include "guest.h"

int main(void) {
  NoCore();
  const int fd = OpenTemporary();
  volatile char* p = mmap(NULL, kPage, PROT_READ, MAP_SHARED, fd, 0);
  Fact(true, "reading beyond the end of an empty file");
  return p[0];
}
