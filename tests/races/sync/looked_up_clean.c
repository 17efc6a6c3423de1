// A mutex's functions are looked up in the library itself, as Free Pascal's programs do.
// CLEAN
#include <dlfcn.h>

#include "race.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int (*lock)(pthread_mutex_t*);
static int (*unlock)(pthread_mutex_t*);
static int value;

static void* Add(void* argument) {
  for (int i = 0; i < 50; i++) {
    lock(&mutex);
    value++;
    unlock(&mutex);
  }
  return argument;
}

int main(void) {
  void* const threads = dlopen("libpthread.so.0", RTLD_NOW);
  void* const libc = dlopen("libc.so.6", RTLD_NOW);
  Check(threads != NULL && libc != NULL);
  *(void**)&lock = dlsym(threads, "pthread_mutex_lock");
  *(void**)&unlock = dlsym(libc, "pthread_mutex_unlock");
  Check(lock != NULL && unlock != NULL);
  RunTwo(Add, Add);
  return value == 100 ? Done() : 1;
}
