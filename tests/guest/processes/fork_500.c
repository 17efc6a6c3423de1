#include "guest.h"

static int good;

static void* Fork(void* argument) {
  for (int i = 0; i < 125; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(i);
    const int status = Reap(child);
    if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == i) Add(&good, 1);
  }
  return argument;
}

int main(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) threads[i] = Start(Fork, NULL);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  Fact(good == 500, "4 threads forked 500 children");
  return Done();
}
