// Access to one's own memory through /proc/self/mem.
#include "guest.h"

int main(void) {
  const int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  if (fd < 0) Skip("no /proc/self/mem");
  char* p = Map(kPage, PROT_READ | PROT_WRITE);
  strcpy(p, "in memory");
  char text[16] = "";
  Fact(pread(fd, text, 10, (off_t)(uintptr_t)p) == 10 && strcmp(text, "in memory") == 0, "read");
  Fact(pwrite(fd, "by", 2, (off_t)(uintptr_t)p) == 2 && strcmp(p, "by memory") == 0, "written");
  mprotect(p, kPage, PROT_READ);
  Fact(pwrite(fd, "on", 2, (off_t)(uintptr_t)p) == 2 && p[0] == 'o' && p[1] == 'n',
       "written although read-only");
  munmap(p, kPage);
  Fact(pread(fd, text, 10, (off_t)(uintptr_t)p) == -1 && errno == EIO, "unmapped: EIO");
  return Done();
}
