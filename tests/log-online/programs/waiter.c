// A thread writes the same in many epochs, then waits for the end of another one, which reads it.
// Prints the value's address.
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

static long value;
static sem_t go;

// At a system call that changes descriptors the monitor deals with all that any thread has done so
// far, which it would do some time later otherwise.
static void Settle(void) { close(dup(STDIN_FILENO)); }

static void* Reader(void* argument) {
  sem_wait(&go);
  usleep(500000);  // the other one waits by then, on a busy machine, too
  Settle();
  return value == 100 ? argument : NULL;
}

int main(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_t reader;
  void* result;
  sem_init(&go, 0, 0);
  if (pthread_create(&reader, NULL, Reader, &value) != 0) return 1;
  for (int i = 0; i < 100; i++) {
    if (i == 50) Settle();  // now it is known what can be repeated
    pthread_mutex_lock(&mutex);
    value++;
    pthread_mutex_unlock(&mutex);
  }
  sem_post(&go);
  if (pthread_join(reader, &result) != 0 || result != &value) return 1;
  printf("%p\n", (void*)&value);
  return 0;
}
