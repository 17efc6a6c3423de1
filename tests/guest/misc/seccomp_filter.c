// A program that restricts itself: one system call fails with an errno of its choice.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "guest.h"

int main(void) {
  const pid_t child = fork();
  if (child == 0) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {4, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      _exit(88);
    _exit(syscall(SYS_getppid) == -1 && errno == EXDEV && getpid() > 0 ? 0 : 1);
  }
  const int status = WEXITSTATUS(Reap(child));
  if (status == 88) Skip("no seccomp");
  Fact(status == 0, "a filter of the program's own works");
  return Done();
}
