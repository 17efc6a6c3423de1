// Threads spawn programs at once.
#include <spawn.h>

#include "guest.h"

static char* self;
static int good;

static void* Spawn(void* argument) {
  for (int i = 0; i < 8; ++i) {
    char number[16];
    snprintf(number, sizeof(number), "%d", 10 * (int)(intptr_t)argument + i);
    char* arguments[] = {self, number, NULL};
    pid_t child = 0;
    if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) != 0) continue;
    const int status = Reap(child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == atoi(number)) Add(&good, 1);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc > 1) return atoi(argv[1]);
  self = argv[0];
  pthread_t threads[4];
  for (intptr_t i = 0; i < 4; ++i) threads[i] = Start(Spawn, (void*)i);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  Fact(good == 32, "4 threads spawned 32 programs");
  return Done();
}
