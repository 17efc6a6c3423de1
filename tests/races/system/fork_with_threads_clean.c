// A thread forks while others work under a mutex; the child makes threads of its own.
// CLEAN
#include <sys/wait.h>

#include "race.h"

int value;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void Hold(void) { pthread_mutex_lock(&mutex); }
static void Release(void) { pthread_mutex_unlock(&mutex); }

static void* Adder(void* argument) {
  Hold();
  value++;
  Release();
  return argument;
}

int main(void) {
  pthread_atfork(Hold, Release, Release);
  const pthread_t first = Start(Adder, NULL);
  const pthread_t second = Start(Adder, NULL);
  const pid_t child = fork();
  Check(child >= 0);
  if (child == 0) {
    RunTwo(Adder, Adder);
    _exit(value >= 2 ? 0 : 1);
  }
  Join(first);
  Join(second);
  int status;
  Check(waitpid(child, &status, 0) == child && status == 0);
  return value == 2 ? Done() : 1;
}
