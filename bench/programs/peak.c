// Runs a program and writes to FILE: wall-clock seconds, peak resident memory in KiB (of the largest process that it and its
// waited-for descendants were), wait status. A small process of its own, because peak memory is inherited across execve.
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
  if (argc < 3) return 125;
  double started = Now();
  pid_t child = fork();
  if (child < 0) return 125;
  if (child == 0) {
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    _exit(127);
  }
  int status;
  struct rusage usage;
  if (wait4(child, &status, 0, &usage) != child) return 125;
  double seconds = Now() - started;
  FILE *file = fopen(argv[1], "w");
  if (!file || fprintf(file, "%.6f %ld %d\n", seconds, usage.ru_maxrss, status) < 0 || fclose(file)) return 125;
  return 0;
}
