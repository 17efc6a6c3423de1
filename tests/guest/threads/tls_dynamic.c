// Thread-local variables of a library loaded while threads already run: __tls_get_addr, dynamic
// vectors that grow.
#include <dlfcn.h>

#include "guest.h"

typedef int* (*Counter)(void);
static Counter counter;
static int loaded;
static int good;

static void* Count(void* argument) {
  WaitUntil(&loaded, 1);
  const int start = (int)(intptr_t)argument;
  if (*counter() != 77) return NULL;
  *counter() = start;
  for (int i = 0; i < 1000; ++i) ++*counter();
  if (*counter() == start + 1000) Add(&good, 1);
  return NULL;
}

int main(void) {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 32);
  if (length <= 0) return 1;
  path[length] = '\0';
  strcpy(strrchr(path, '/') + 1, "guest_module.so");
  pthread_t threads[4];
  for (intptr_t i = 0; i < 4; ++i) threads[i] = Start(Count, (void*)(i * 10000));
  void* library = dlopen(path, RTLD_NOW);
  Fact(library != NULL, "library loaded");
  if (library == NULL) return 1;
  *(void**)&counter = dlsym(library, "GuestCounter");
  Store(&loaded, 1);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  Fact(good == 4, "4 older threads had counters of their own");
  Fact(*counter() == 77, "main has the initial value");
  Fact(dlclose(library) == 0, "library closed");
  return Done();
}
