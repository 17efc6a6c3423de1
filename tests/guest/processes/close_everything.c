// A program that closes all descriptors, as daemons do, and goes on: threads, fork, files.
#include "guest.h"

static int good;
static void* Work(void* argument) {
  char* p = Map(16 * kPage, PROT_READ | PROT_WRITE);
  memset(p, 1, 16 * kPage);
  Add(&good, p[16 * kPage - 1]);
  return argument;
}

int main(void) {
  const int output = dup(1);
  for (int i = 0; i < 20000; ++i) {
    if (i != output) close(i);
  }
  Fact(dup2(output, 1) == 1, "output again");
  close(output);
  Fact(open("/dev/null", O_RDWR) == 0, "0 is the lowest");
  Fact(open("/dev/null", O_RDWR) == 2 && open("/dev/null", O_RDWR) == 3, "then 2 and 3");
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) threads[i] = Start(Work, NULL);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  Fact(good == 4, "threads and mappings work");
  const pid_t child = fork();
  if (child == 0) {
    Work(NULL);
    _exit(good == 5 ? 8 : 1);
  }
  Fact(WEXITSTATUS(Reap(child)) == 8, "fork works");
  return Done();
}
