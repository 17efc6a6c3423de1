// Threads that start programs: system, popen, posix_spawn.
// CLEAN
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "race.h"

extern char** environ;
int statuses[3];

static void* BySystem(void* argument) {
  statuses[0] = system("exit 3");
  return argument;
}

static void* ByPipe(void* argument) {
  char line[16] = "";
  FILE* const pipe = popen("echo two", "r");
  Check(pipe != NULL && fgets(line, sizeof line, pipe) != NULL);
  statuses[1] = pclose(pipe) + (strcmp(line, "two\n") == 0);
  return argument;
}

int main(void) {
  const pthread_t one = Start(BySystem, NULL), other = Start(ByPipe, NULL);
  pid_t child = 0;
  char* arguments[] = {"sh", "-c", "exit 0", NULL};
  Check(posix_spawnp(&child, "sh", NULL, NULL, arguments, environ) == 0);
  Check(waitpid(child, &statuses[2], 0) == child);
  Join(one);
  Join(other);
  return WEXITSTATUS(statuses[0]) == 3 && statuses[1] == 1 && statuses[2] == 0 ? Done() : 1;
}
