#include <spawn.h>

#include "guest.h"

int main(int argc, char** argv) {
  if (argc > 1) {
    const char* value = getenv("GUEST_SPAWN");
    char byte = 0;
    if (read(0, &byte, 1) != 1 || byte != 'i') return 2;
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    if (!sigismember(&mask, SIGUSR1)) return 3;
    return value != NULL && strcmp(value, "yes") == 0 && getpgrp() == getpid() ? 50 : 1;
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return 1;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[0], 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setpgroup(&attributes, 0);
  const sigset_t set = SetOf(SIGUSR1);
  posix_spawnattr_setsigmask(&attributes, &set);
  char* arguments[] = {argv[0], (char*)"child", NULL};
  char* environment[] = {(char*)"GUEST_SPAWN=yes", NULL};
  for (int i = 0; i < 3; ++i) {
    pid_t child = 0;
    Fact(posix_spawn(&child, "/proc/self/exe", &actions, &attributes, arguments, environment) == 0,
         "spawned");
    if (write(ends[1], "i", 1) != 1) return 1;
    Fact(WEXITSTATUS(Reap(child)) == 50, "input, environment, mask and group as asked");
  }
  pid_t none = 0;
  Fact(posix_spawn(&none, "/nonexistent/program", NULL, NULL, arguments, environ) == ENOENT,
       "no such program: ENOENT");
  Fact(posix_spawn(&none, "/tmp", NULL, NULL, arguments, environ) == EACCES, "a directory: EACCES");
  Fact(posix_spawnp(&none, "no-such-program-anywhere", NULL, NULL, arguments, environ) == ENOENT,
       "not on the path: ENOENT");
  Fact(waitpid(-1, NULL, 0) == -1 && errno == ECHILD, "no child left behind");
  return Done();
}
