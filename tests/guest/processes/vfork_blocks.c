// vfork stops the caller until the child execs or exits; the caller's other threads go on.
#include "guest.h"

static int counter;
static int stop;
static volatile bool child_done;

static void* Count(void* argument) {
  while (!Load(&stop)) Add(&counter, 1);
  return argument;
}

int main(void) {
  pthread_t thread = Start(Count, NULL);
  volatile int before = 0;
  volatile int after = 0;
  const pid_t child = vfork();
  if (child == 0) {
    before = Load(&counter);
    for (volatile int i = 0; i < 20000000 && Load(&counter) == before; ++i) {
    }
    after = Load(&counter);
    child_done = true;
    _exit(3);
  }
  Fact(child_done, "the parent waited");
  Fact(after != before, "its other thread did not");
  Fact(WEXITSTATUS(Reap(child)) == 3, "status");
  Store(&stop, 1);
  pthread_join(thread, NULL);
  return Done();
}
