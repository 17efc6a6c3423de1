// clone with CLONE_VM|CLONE_VFORK and a stack of its own, as posix_spawn does; and CLONE_VM alone.
#include "../threads/raw_clone.h"

static int value;
static int cleared = -1;

static void Child(void* argument) {
  Store((int*)argument, (int)RawSystemCall(SYS_getpid, 0, 0, 0));
}

int main(void) {
  char* stack = Map(65536, PROT_READ | PROT_WRITE);
  pid_t child = (pid_t)RawClone(CLONE_VM | CLONE_VFORK | SIGCHLD, stack + 65536, NULL, NULL, NULL,
                                Child, &value);
  Fact(child > 0 && value == child,
       "CLONE_VM|CLONE_VFORK: a process of its own in this memory, waited for");
  Fact(Reap(child) == 0, "reaped");
  value = 0;
  child = (pid_t)RawClone(CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_CHILD_CLEARTID | SIGCHLD,
                          stack + 65536, NULL, &cleared, NULL, Child, &value);
  AwaitCleared(&cleared);
  Fact(value == child, "CLONE_VM: stored into this memory");
  Fact(Reap(child) == 0, "reaped");
  child = (pid_t)RawClone(CLONE_VM, stack + 65536, NULL, NULL, NULL, Child, &value);
  int status;
  Fact(waitpid(child, &status, 0) == -1 && errno == ECHILD,
       "without SIGCHLD it is not waited for by waitpid");
  Fact(waitpid(child, &status, __WCLONE) == child && status == 0, "but with __WCLONE");
  return Done();
}
