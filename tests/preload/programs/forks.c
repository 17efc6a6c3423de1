/* Forks while other threads create, join, lock and allocate; each child does the same. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int stop;

static void* Short(void* argument) {
  pthread_mutex_lock(&mutex);
  free(malloc(100));
  pthread_mutex_unlock(&mutex);
  return argument;
}

static void CreateAndJoin(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, Short, threads + 4 - i);
  for (int i = 0; i < 4; ++i) {
    void* value = NULL;
    if (pthread_join(threads[i], &value) != 0 || value != threads + 4 - i) _exit(3);
  }
}

static void* Churn(void* argument) {
  while (!stop) CreateAndJoin();
  return argument;
}

static void Hold(void) { pthread_mutex_lock(&mutex); }
static void Drop(void) { pthread_mutex_unlock(&mutex); }

int main(void) {
  pthread_atfork(Hold, Drop, Drop);
  pthread_t churners[2];
  for (int i = 0; i < 2; ++i) pthread_create(&churners[i], NULL, Churn, NULL);
  int good = 0;
  for (int i = 0; i < 50; ++i) {
    pid_t child = fork();
    if (child == 0) {
      CreateAndJoin();
      _exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) == child && status == 0) ++good;
  }
  stop = 1;
  for (int i = 0; i < 2; ++i) pthread_join(churners[i], NULL);
  printf("%d children\n", good);
  return 0;
}
