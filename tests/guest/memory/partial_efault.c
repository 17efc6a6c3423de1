// A transfer that runs into a bad page in the middle ends early.
#include <sys/uio.h>

#include "guest.h"

int main(void) {
  char* p = Map(2 * kPage, PROT_READ | PROT_WRITE);
  munmap(p + kPage, kPage);
  memset(p, 'x', kPage);
  int ends[2];
  if (pipe(ends) != 0) return 1;
  Fact(write(ends[1], p, 2 * kPage) == kPage, "write(2) of two pages wrote one");
  char buffer[2 * kPage];
  Fact(read(ends[0], buffer, sizeof(buffer)) == kPage, "it is in the pipe");
  struct iovec parts[2] = {{p, kPage}, {p + kPage, 100}};
  Fact(writev(ends[1], parts, 2) == kPage, "writev wrote the first part");
  Fact(read(ends[0], buffer, sizeof(buffer)) == kPage, "it is in the pipe");
  Fact(write(ends[1], p + kPage, 1) == -1 && errno == EFAULT, "nothing at all is EFAULT");
  struct iovec local = {buffer, 50};
  struct iovec remote = {p, 50};
  Fact(process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 50 && buffer[49] == 'x',
       "process_vm_readv of oneself");
  return Done();
}
