// Threads that load and look up at the same time: the loader's tables are its own affair.
// CLEAN
#include <dlfcn.h>

#include "race.h"

static void* Loader(void* argument) {
  void* library = dlopen("libm.so.6", RTLD_NOW);
  Check(library != NULL);
  double (*floor_function)(double) = (double (*)(double))dlsym(library, "floor");
  Check(floor_function(1.5) == 1.0);
  dlclose(library);
  return argument;
}

int main(void) {
  RunTwo(Loader, Loader);
  return Done();
}
