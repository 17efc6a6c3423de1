/* Uses the C11 threads of c11_library.c, which are not libc's. */
#include <pthread.h>
#include <stdio.h>

int thrd_create(pthread_t* thread, int (*start)(void*), void* argument);
int thrd_join(pthread_t thread, int* result);
int mtx_lock(pthread_mutex_t* mutex);
int mtx_unlock(pthread_mutex_t* mutex);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int sum;

static int Add(void* argument) {
  if (mtx_lock(&mutex) != 1) return -1;
  sum += *(int*)argument;
  mtx_unlock(&mutex);
  return *(int*)argument;
}

int main(void) {
  int numbers[] = {1, 2, 3, 4};
  pthread_t threads[4];
  int results = 0;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 4; ++i)
      if (thrd_create(&threads[i], Add, &numbers[i]) != 1) return 1;
    for (int i = 0; i < 4; ++i) {
      int result = 0;
      if (thrd_join(threads[i], &result) != 1) return 1;
      results += result;
    }
  }
  printf("%d %d\n", sum, results);
  return 0;
}
