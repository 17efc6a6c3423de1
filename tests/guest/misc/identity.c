#include <sys/prctl.h>
#include <sys/utsname.h>

#include "guest.h"

int main(void) {
  struct utsname name;
  Fact(uname(&name) == 0 && strcmp(name.sysname, "Linux") == 0 &&
           strcmp(name.machine, "x86_64") == 0,
       "uname");
  char own[17] = "";
  prctl(PR_GET_NAME, own);
  Fact(strncmp(own, program_invocation_short_name, 15) == 0, "PR_GET_NAME: %s", own);
  prctl(PR_SET_NAME, "a new name");
  prctl(PR_GET_NAME, own);
  Fact(strcmp(own, "a new name") == 0, "PR_SET_NAME");
  Fact(prctl(PR_GET_DUMPABLE) == 1, "dumpable");
  Fact(prctl(PR_SET_DUMPABLE, 0) == 0 && prctl(PR_GET_DUMPABLE) == 0 &&
           prctl(PR_SET_DUMPABLE, 1) == 0,
       "switched off and on");
  Fact(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0, "no_new_privs is off");
  Fact(prctl(9999) == -1 && errno == EINVAL, "unknown prctl: EINVAL");
  Fact(getpid() == (pid_t)syscall(SYS_getpid) && getppid() == (pid_t)syscall(SYS_getppid),
       "process ids");
  uid_t ids[3];
  Fact(getresuid(&ids[0], &ids[1], &ids[2]) == 0 && ids[0] == getuid() && ids[1] == geteuid(),
       "user ids");
  Fact(getpriority(PRIO_PROCESS, 0) == nice(0), "priority");
  struct rusage usage;
  Fact(getrusage(RUSAGE_SELF, &usage) == 0 && usage.ru_maxrss > 0, "resource usage");
  return Done();
}
