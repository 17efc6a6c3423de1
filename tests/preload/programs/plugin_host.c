/* A program in C whose plug-ins bring the C++ library, and libgomp, out of the reach of the global
 * search. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    void* plugin = dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) {
      printf("%s\n", dlerror());
      return 1;
    }
    int (*run)(void) = (int (*)(void))dlsym(plugin, "plugin_run");
    printf("%d\n", run());
    /* libgomp's threads live on in its code. */
    if (!strstr(arguments[i], "openmp")) dlclose(plugin);
  }
  return 0;
}
