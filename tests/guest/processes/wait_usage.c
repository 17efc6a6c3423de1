#include "guest.h"

int main(void) {
  pid_t child = fork();
  if (child == 0) {
    volatile unsigned long x = 0;
    const int64_t end = NowNs() + 20000000;
    while (NowNs() < end) ++x;
    _exit(11);
  }
  siginfo_t info;
  memset(&info, 0, sizeof(info));
  Fact(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) == 0, "waitid with WNOWAIT");
  Fact(info.si_signo == SIGCHLD && info.si_code == CLD_EXITED && info.si_pid == child &&
           info.si_status == 11,
       "its siginfo");
  int status = 0;
  struct rusage usage;
  memset(&usage, 0, sizeof(usage));
  Fact(wait4(child, &status, 0, &usage) == child && WEXITSTATUS(status) == 11,
       "still there for wait4");
  Fact(usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec > 0,
       "it used time");
  Fact(usage.ru_maxrss > 0, "it used memory");
  Fact(waitpid(child, &status, 0) == -1 && errno == ECHILD, "waiting twice is ECHILD");
  child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  Fact(waitpid(child, &status, WNOHANG) == 0, "WNOHANG: nothing yet");
  memset(&info, 0, sizeof(info));
  Fact(waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0,
       "waitid WNOHANG: nothing yet");
  kill(child, SIGTERM);
  Fact(waitid(P_ALL, 0, &info, WEXITED) == 0 && info.si_code == CLD_KILLED &&
           info.si_status == SIGTERM,
       "waitid: CLD_KILLED by SIGTERM");
  Fact(waitpid(getpid(), &status, 0) == -1 && errno == ECHILD, "oneself is no child");
  Fact(waitpid(child, &status, 0x40000000) == -1, "gone");
  return Done();
}
