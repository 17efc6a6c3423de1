// Who waits for a child, or finds its descriptor ready, comes after who killed it.
// CLEAN
// TSAN-DIFFERS it does not know kill
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "race.h"

static pid_t child;
static int descriptor;
int values[2];

static void* Kills(void* argument) {
  values[0] = values[1] = 1;
  Check(kill(child, SIGKILL) == 0);
  return argument;
}

static void* Waits(void* argument) {
  struct pollfd entry = {.fd = descriptor, .events = POLLIN};
  Check(poll(&entry, 1, -1) == 1);
  values[0]++;
  return argument;
}

int main(void) {
  child = fork();
  if (child == 0)
    for (;;) pause();
  descriptor = (int)syscall(SYS_pidfd_open, child, 0);
  Check(descriptor >= 0);
  const pthread_t kills = Start(Kills, NULL);
  const pthread_t waits = Start(Waits, NULL);
  Join(waits);
  Check(waitpid(child, NULL, 0) == child);
  values[1]++;
  Join(kills);
  return values[0] + values[1] == 4 ? Done() : 1;
}
