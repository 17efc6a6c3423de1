// A program that looks for anything it has not made itself: children, signals, descriptors,
// threads. In the forked child the recording starts late, with its first thread.
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t signals;
static volatile int value;

static void OnChild(int number) {
  (void)number;
  ++signals;
}

static void* Work(void* unused) {
  value = 1;
  return unused;
}

static int Entries(const char* path) {
  DIR* directory = opendir(path);
  if (directory == NULL) return -1;
  int count = 0;
  for (const struct dirent* entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
    if (entry->d_name[0] != '.') ++count;
  }
  closedir(directory);
  return count;
}

static int Look(const char* who) {
  const int descriptors = Entries("/proc/self/fd");
  const int lowest = dup(0);
  close(lowest);
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, Work, NULL);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  usleep(300000);
  int wrong = 0;
  if (Entries("/proc/self/fd") != descriptors) wrong |= 1;
  if (Entries("/proc/self/task") != 1) wrong |= 2;
  int status;
  if (waitpid(-1, &status, WNOHANG) != -1 || errno != ECHILD) wrong |= 4;
  if (waitpid(-1, &status, WNOHANG | __WALL) != -1 || errno != ECHILD) wrong |= 8;
  if (signals != 0) wrong |= 16;
  const int next = dup(0);
  if (next != lowest) wrong |= 32;
  close(next);
  printf("%s %d\n", who, wrong);
  fflush(stdout);
  return wrong;
}

int main(void) {
  signal(SIGCHLD, OnChild);
  int wrong = Look("parent");
  const pid_t child = fork();
  if (child == 0) _exit(Look("child"));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return wrong | WEXITSTATUS(status);
}
