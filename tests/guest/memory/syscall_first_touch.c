// The kernel is the first to touch a page, on the program's behalf; and arguments in pages of every
// kind.
#include "guest.h"

int main(void) {
  char* fresh = Map(8 * kPage, PROT_READ | PROT_WRITE);
  const int fd = OpenTemporary();
  char data[3 * kPage];
  memset(data, 'd', sizeof(data));
  Fact(write(fd, data, sizeof(data)) == sizeof(data), "written");
  Fact(pread(fd, fresh + 100, sizeof(data), 0) == sizeof(data), "read into untouched pages");
  Fact(fresh[99] == 0 && fresh[100] == 'd' && fresh[100 + 3 * kPage - 1] == 'd' &&
           fresh[100 + 3 * kPage] == 0,
       "all there");
  Fact(write(fd, fresh + 6 * kPage, kPage) == kPage, "written from an untouched page");
  char byte = 1;
  Fact(pread(fd, &byte, 1, 3 * kPage) == 1 && byte == 0, "zeros");
  mprotect(fresh, 8 * kPage, PROT_READ);
  Fact(pread(fd, fresh, 10, 0) == -1 && errno == EFAULT, "read(2) into a read-only page is EFAULT");
  munmap(fresh + 4 * kPage, kPage);
  mprotect(fresh, 2 * kPage, PROT_READ | PROT_WRITE);
  memcpy(fresh + 2 * kPage - 5, "/tmp", 5);
  struct stat status;
  Fact(stat(fresh + 2 * kPage - 5, &status) == 0 && S_ISDIR(status.st_mode),
       "a path at the end of a page");
  mprotect(fresh + kPage, kPage, PROT_READ | PROT_WRITE);
  memset(fresh + kPage, 'x', kPage);
  mprotect(fresh + 2 * kPage, kPage, PROT_NONE);
  Fact(stat(fresh + kPage + 100, &status) == -1 && errno == EFAULT,
       "a path that runs into PROT_NONE is EFAULT");
  Fact(stat((char*)0x7000000000000000, &status) == -1 && errno == EFAULT,
       "a path at no address at all is EFAULT");
  return Done();
}
