#include <dlfcn.h>

#include "guest.h"

int main(void) {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 32);
  if (length <= 0) return 1;
  path[length] = '\0';
  strcpy(strrchr(path, '/') + 1, "guest_module.so");
  for (int i = 0; i < 20; ++i) {
    void* library = dlopen(path, i % 2 ? RTLD_NOW : RTLD_LAZY);
    if (library == NULL) Fact(false, "loaded");
    int (*add)(int, int) = (int (*)(int, int))(uintptr_t)dlsym(library, "GuestAdd");
    if (add == NULL || add(i, 2) != i + 2) Fact(false, "called");
    if (dlclose(library) != 0) Fact(false, "closed");
  }
  Fact(true, "loaded, called and closed 20 times");
  Fact(dlopen("/nonexistent/library.so", RTLD_NOW) == NULL && dlerror() != NULL,
       "a missing library gives an error");
  Dl_info info;
  Fact(dladdr((void*)(uintptr_t)main, &info) != 0 && info.dli_fbase != NULL, "dladdr of main");
  return Done();
}
