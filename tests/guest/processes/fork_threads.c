// Threads fork at once; each child has one thread, the one that forked, with its thread-local
// values.
#include <dirent.h>

#include "guest.h"

static __thread int mine;
static int good;

static int Tasks(void) {
  DIR* directory = opendir("/proc/self/task");
  int count = 0;
  for (struct dirent* entry; directory != NULL && (entry = readdir(directory)) != NULL;)
    count += entry->d_name[0] != '.';
  if (directory != NULL) closedir(directory);
  return count;
}

static void* Fork(void* argument) {
  mine = (int)(intptr_t)argument;
  for (int i = 0; i < 5; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const bool right =
          mine == (int)(intptr_t)argument && Tasks() == 1 && getpid() == (pid_t)syscall(SYS_gettid);
      _exit(right ? 10 + mine : 1);
    }
    const int status = Reap(child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 10 + mine) Add(&good, 1);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[4];
  for (intptr_t i = 0; i < 4; ++i) threads[i] = Start(Fork, (void*)i);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  Fact(good == 20, "20 children of 4 threads");
  return Done();
}
