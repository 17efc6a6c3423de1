#include <dirent.h>

#include "guest.h"

static int ids[6];
static int ready;
static int leave;

static void* Show(void* argument) {
  *(int*)argument = (int)syscall(SYS_gettid);
  if (getpid() == (int)syscall(SYS_getpid)) Add(&ready, 1);
  WaitUntil(&leave, 1);
  return NULL;
}

static int Tasks(void) {
  DIR* directory = opendir("/proc/self/task");
  int count = 0;
  for (struct dirent* entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
    count += entry->d_name[0] != '.';
  }
  if (directory != NULL) closedir(directory);
  return count;
}

int main(void) {
  Fact(syscall(SYS_gettid) == getpid(), "main's thread id is the process id");
  pthread_t threads[6];
  for (int i = 0; i < 6; ++i) threads[i] = Start(Show, &ids[i]);
  Fact(WaitUntil(&ready, 6), "6 threads ran with one process id");
  bool distinct = true;
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < i; ++j) distinct = distinct && ids[i] != ids[j];
    distinct = distinct && ids[i] != getpid();
  }
  Fact(distinct, "their thread ids are distinct");
  Fact(Tasks() >= 7, "at least 7 tasks in /proc/self/task");
  bool reachable = true;
  for (int i = 0; i < 6; ++i)
    reachable = reachable && syscall(SYS_tgkill, getpid(), ids[i], 0) == 0;
  Fact(reachable, "tgkill reaches each of them");
  Store(&leave, 1);
  for (int i = 0; i < 6; ++i) pthread_join(threads[i], NULL);
  // The kernel tells the joiner a little before.
  bool gone = false;
  for (int i = 0; i < 10000 && !gone; ++i) {
    gone = syscall(SYS_tgkill, getpid(), ids[0], 0) == -1 && errno == ESRCH;
    if (!gone) SleepMs(1);
  }
  Fact(gone, "gone after the join");
  return Done();
}
