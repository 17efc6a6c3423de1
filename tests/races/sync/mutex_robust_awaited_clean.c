// A robust mutex is waited for while its holder dies: the heir comes after all of the holder.
// CLEAN
#include <errno.h>
#include <stdatomic.h>

#include "race.h"

enum { kRounds = 30 };

int value;
pthread_mutex_t mutex;
atomic_int taken;

static void* Dying(void* argument) {
  Check(pthread_mutex_lock(&mutex) == 0);
  atomic_store(&taken, 1);
  if (argument != NULL) usleep(2000);  // the heir waits in the kernel
  value++;
  return NULL;
}

int main(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex, &attributes);
  for (int i = 0; i < kRounds; ++i) {
    atomic_store(&taken, 0);
    const pthread_t dying = Start(Dying, i % 2 == 0 ? NULL : &value);
    while (!atomic_load(&taken)) usleep(50);
    Check(pthread_mutex_lock(&mutex) == EOWNERDEAD);
    value++;
    pthread_mutex_consistent(&mutex);
    pthread_mutex_unlock(&mutex);
    Join(dying);
  }
  return value == 2 * kRounds ? Done() : 1;
}
