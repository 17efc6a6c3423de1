// Which filters of system calls the kernel takes: how libraries ask what it knows.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "guest.h"

static long Seccomp(unsigned operation, unsigned flags, const void* arguments) {
  return syscall(SYS_seccomp, operation, flags, arguments);
}

int main(void) {
  struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const struct sock_fprog empty = {0, allow}, nowhere = {1, (void*)8}, good = {1, allow};
  if (Seccomp(SECCOMP_SET_MODE_FILTER, 0, NULL) == -1 && errno != EFAULT) Skip("no seccomp");
  Fact(Seccomp(SECCOMP_SET_MODE_FILTER, 0, NULL) == -1 && errno == EFAULT, "EFAULT");
  Fact(Seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL) == -1 && errno == EFAULT,
       "a known flag");
  Fact(Seccomp(SECCOMP_SET_MODE_FILTER, 1u << 30, NULL) == -1 && errno == EINVAL,
       "an unknown flag");
  Fact(Seccomp(SECCOMP_SET_MODE_STRICT, 1, NULL) == -1 && errno == EINVAL, "strict mode's flags");
  Fact(Seccomp(4711, 0, NULL) == -1 && errno == EINVAL, "an unknown operation");
  Fact(prctl(PR_SET_SECCOMP, 3, NULL) == -1 && errno == EINVAL, "an unknown mode");
  Fact(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1 && errno == EFAULT, "by prctl");
  Fact(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
  Fact(Seccomp(SECCOMP_SET_MODE_FILTER, 0, &empty) == -1 && errno == EINVAL, "no instruction");
  Fact(Seccomp(SECCOMP_SET_MODE_FILTER, 0, &nowhere) == -1 && errno == EFAULT,
       "none that can be read");
  Fact(Seccomp(SECCOMP_SET_MODE_FILTER, 0, &good) == 0, "one that allows everything");
  return Done();
}
