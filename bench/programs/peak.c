// peak FILE PROGRAM [ARG...]: runs the program and writes to FILE: seconds, seconds of processor
// time, peak resident memory in KiB (of the largest of it and its waited-for descendants), wait
// status. It is a small process of its own because peak memory is inherited across execve.
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double Seconds(struct timeval time) { return time.tv_sec + time.tv_usec * 1e-6; }

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

int main(int argc, char** argv) {
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
  FILE* file = fopen(argv[1], "w");
  if (!file) return 125;
  fprintf(file, "%.6f %.6f %ld %d\n", seconds, Seconds(usage.ru_utime) + Seconds(usage.ru_stime),
          usage.ru_maxrss, status);
  if (fclose(file)) return 125;
  return 0;
}
