// Who gets the number of a closed descriptor for a new one comes after who closed it: servers have
// tables of connections by numbers.
// CLEAN
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "race.h"

int connections[1024];
static int first, ends[2];

static void* Serves(void* argument) {
  ++connections[first];
  ++connections[ends[0]];
  ++connections[ends[1]];
  close(first);
  close(ends[0]);
  close(ends[1]);
  return argument;
}

// Nothing but the kernel's table of descriptors tells that the others were closed.
static int Reused(int number, int (*make)(void)) {
  for (;;) {
    const int made = make();
    Check(made >= 0);
    if (made == number) return made;
    close(made);
    poll(NULL, 0, 1);
  }
}

static int MakeCounter(void) { return eventfd(0, 0); }
static int MakeSocket(void) { return socket(AF_UNIX, SOCK_STREAM, 0); }
static int MakePipe(void) {
  int made[2];
  Check(pipe(made) == 0);
  close(made[1]);
  return made[0];
}

static void* Accepts(void* argument) {
  connections[Reused(first, MakeCounter)] = 0;
  connections[Reused(ends[0], MakeSocket)] = 0;
  connections[Reused(ends[1], MakePipe)] = 0;
  return argument;
}

int main(void) {
  first = eventfd(0, 0);
  Check(first >= 0 && pipe(ends) == 0);
  RunTwo(Serves, Accepts);
  return Done();
}
