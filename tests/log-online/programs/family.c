// A program with a race in each of its processes. The parent forks a child; the child races, then
// runs this program again (argument "last"), which races too; the parent starts the program once
// more by posix_spawn (argument "spawned"). Prints "NAME PID" for each that has raced.
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int parent_value, child_value, last_value, spawned_value;

static void* Parent(void* unused) {
  parent_value = 1;  // [parent]
  return unused;
}
static void* Child(void* unused) {
  child_value = 1;  // [child]
  return unused;
}
static void* Last(void* unused) {
  last_value = 1;  // [last]
  return unused;
}
static void* Spawned(void* unused) {
  spawned_value = 1;  // [spawned]
  return unused;
}

static void Race(const char* name, void* (*work)(void*)) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  printf("%s %d\n", name, (int)getpid());
  fflush(stdout);
}

int main(int argc, char** argv) {
  extern char** environ;
  if (argc > 1 && strcmp(argv[1], "spawned") == 0) {
    Race("spawned", Spawned);
    return 0;
  }
  if (argc > 1) {
    Race("last", Last);
    return 0;
  }
  Race("parent", Parent);
  const pid_t child = fork();
  if (child == 0) {
    Race("child", Child);
    char* arguments[] = {argv[0], "last", NULL};
    execv(argv[0], arguments);
    _exit(1);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) return 1;
  pid_t spawned = 0;
  char* arguments[] = {argv[0], "spawned", NULL};
  if (posix_spawn(&spawned, argv[0], NULL, NULL, arguments, environ) != 0) return 2;
  if (waitpid(spawned, &status, 0) != spawned || status != 0) return 3;
  return 0;
}
