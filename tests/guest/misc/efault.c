#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/utsname.h>

#include "guest.h"

int main(void) {
  void* const bad[] = {(void*)16, (void*)0x7fffffffe000, (void*)0x800000000000,
                       (void*)0xffff800000000000, (void*)-1};
  int ends[2];
  if (pipe(ends) != 0 || write(ends[1], "xxxxxxxx", 8) != 8) return 1;
  for (int i = 0; i < 5; ++i) {
    char* p = bad[i];
    int good = 0;
    // The top page of the user's half may be the program's stack, or nothing.
    if (i == 1) p = mmap(NULL, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    good += read(ends[0], p, 1) == -1 && errno == EFAULT;
    good += write(ends[1], p, 1) == -1 && errno == EFAULT;
    good += open(p, O_RDONLY) == -1 && errno == EFAULT;
    good += stat("/", (struct stat*)(void*)p) == -1 && errno == EFAULT;
    good += uname((struct utsname*)(void*)p) == -1 && errno == EFAULT;
    good += syscall(SYS_nanosleep, p, NULL) == -1 && errno == EFAULT;
    good += syscall(SYS_rt_sigaction, SIGUSR1, p, NULL, 8) == -1 && errno == EFAULT;
    good += syscall(SYS_rt_sigprocmask, SIG_BLOCK, p, NULL, 8) == -1 && errno == EFAULT;
    good += syscall(SYS_poll, p, 1, 0) == -1 && errno == EFAULT;
    good += syscall(SYS_pipe, p) == -1 && errno == EFAULT;
    good += syscall(SYS_getcwd, p, 100) == -1 && errno == EFAULT;
    good += syscall(SYS_getrlimit, RLIMIT_CORE, p) == -1 && errno == EFAULT;
    good += syscall(SYS_sigaltstack, p, NULL) == -1 && errno == EFAULT;
    Fact(good == 13, "13 system calls with bad pointer number %d: EFAULT", i);
  }
  Fact(syscall(SYS_rt_sigaction, SIGUSR1, NULL, NULL, 4) == -1 && errno == EINVAL,
       "a signal set of 4 bytes: EINVAL");
  char byte;
  Fact(read(ends[0], &byte, 1) == 1 && byte == 'x', "nothing was lost");
  return Done();
}
