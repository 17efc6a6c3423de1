// The parent dies: the orphan gets another, and PDEATHSIG tells it.
#include <sys/prctl.h>

#include "guest.h"

static int got;
static void Note(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  Store(&got, 1);
}

int main(void) {
  int* shared = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const pid_t middle = fork();
  if (middle == 0) {
    const pid_t self = getpid();
    if (fork() == 0) {
      Handle(SIGUSR1, Note, 0);
      prctl(PR_SET_PDEATHSIG, SIGUSR1);
      Store(&shared[0], 1);
      const bool told = WaitUntil(&got, 1);
      // Another thread of the parent's process may be its parent first, as long as that ends.
      for (int i = 0; i < 10000 && getppid() == self; ++i) SleepMs(1);
      Store(&shared[1], told && getppid() != self ? 1 : 2);
      _exit(0);
    }
    WaitUntil(&shared[0], 1);
    _exit(4);
  }
  Fact(WEXITSTATUS(Reap(middle)) == 4, "the middle one is gone");
  for (int i = 0; i < 20000 && Load(&shared[1]) == 0; ++i) SleepMs(1);
  Fact(Load(&shared[1]) == 1, "the orphan got PR_SET_PDEATHSIG's signal and another parent");
  return Done();
}
