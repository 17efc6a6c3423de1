#include <linux/sched.h>

#include "guest.h"

int main(void) {
  struct clone_args arguments;
  memset(&arguments, 0, sizeof(arguments));
  int descriptor = -1;
  arguments.flags = CLONE_PIDFD;
  arguments.pidfd = (uint64_t)(uintptr_t)&descriptor;
  arguments.exit_signal = SIGCHLD;
  static volatile int value = 1;
  const long child = syscall(SYS_clone3, &arguments, sizeof(arguments));
  if (child == -1 && errno == ENOSYS) Skip("no clone3");
  if (child == 0) {
    value = 2;
    _exit(23);
  }
  Fact(child > 0, "clone3 made a process");
  Fact(descriptor >= 0, "with a descriptor for it");
  siginfo_t info;
  memset(&info, 0, sizeof(info));
  Fact(waitid((idtype_t)3, (id_t)descriptor, &info, WEXITED) == 0 && info.si_status == 23,
       "waited for through the descriptor");
  Fact(value == 1, "in memory of its own");
  close(descriptor);
  // clone(2) has one place for both, and refuses them together.
  pid_t told = 0;
  arguments.flags = CLONE_PIDFD | CLONE_PARENT_SETTID;
  arguments.parent_tid = (uint64_t)(uintptr_t)&told;
  const long both = syscall(SYS_clone3, &arguments, sizeof(arguments));
  if (both == 0) _exit(3);
  Fact(both > 0 && told == both && WEXITSTATUS(Reap((pid_t)both)) == 3,
       "a descriptor and the number");
  close(descriptor);
  arguments.parent_tid = 0;
  struct {
    struct clone_args known;
    char unknown[8];
  } longer = {arguments, {0, 0, 0, 1}};
  Fact(syscall(SYS_clone3, &longer, sizeof(longer)) == -1 && errno == E2BIG,
       "fields that nobody knows are E2BIG");
  arguments.flags = CLONE_CLEAR_SIGHAND;
  arguments.pidfd = 0;
  signal(SIGUSR1, (void (*)(int))(uintptr_t)main);
  const long second = syscall(SYS_clone3, &arguments, sizeof(arguments));
  if (second == 0) {
    struct sigaction action;
    sigaction(SIGUSR1, NULL, &action);
    _exit(action.sa_handler == SIG_DFL ? 1 : 2);
  }
  Fact(second > 0 && WEXITSTATUS(Reap((pid_t)second)) == 1, "CLONE_CLEAR_SIGHAND");
  return Done();
}
