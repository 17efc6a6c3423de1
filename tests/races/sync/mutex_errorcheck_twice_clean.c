// A second lock of an error-checking mutex fails, a second unlock too: the owner stays the same.
// CLEAN
#include <errno.h>

#include "race.h"

int value;
static pthread_mutex_t mutex;

static void* Adds(void* argument) {
  pthread_mutex_lock(&mutex);
  Check(pthread_mutex_lock(&mutex) == EDEADLK);
  value++;
  pthread_mutex_unlock(&mutex);
  Check(pthread_mutex_unlock(&mutex) == EPERM);
  return argument;
}

int main(void) {
  pthread_mutexattr_t type;
  pthread_mutexattr_init(&type);
  pthread_mutexattr_settype(&type, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&mutex, &type);
  RunTwo(Adds, Adds);
  return value == 2 ? Done() : 1;
}
