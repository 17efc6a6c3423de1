// A thread writes the same in many epochs, then waits for the end of another one, which reads it.
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static long value;
static sem_t go;

static void* Reader(void* argument) {
  sem_wait(&go);
  usleep(500000);  // the other one waits by then, on a busy machine, too
  return value == 100 ? argument : NULL;
}

int main(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_t reader;
  void* result;
  sem_init(&go, 0, 0);
  if (pthread_create(&reader, NULL, Reader, &value) != 0) return 1;
  for (int i = 0; i < 100; i++) {
    pthread_mutex_lock(&mutex);
    value++;
    pthread_mutex_unlock(&mutex);
  }
  sem_post(&go);
  return pthread_join(reader, &result) == 0 && result == &value ? 0 : 1;
}
