// ThreadSanitizer's interface for managed heaps (tsan_interface_java.h), looked up at run time.
#ifndef TRAPLINE_TESTS_RACES_RUNTIMES_JAVA_H_
#define TRAPLINE_TESTS_RACES_RUNTIMES_JAVA_H_

#include <dlfcn.h>

#include "fibers.h"

#define JAVA(name, type, ...)                                       \
  do {                                                              \
    void(*function) type = (void(*) type)dlsym(RTLD_DEFAULT, name); \
    if (function != (void(*) type)0) function(__VA_ARGS__);         \
  } while (0)

#define JAVA_INIT(heap, size) \
  JAVA("__tsan_java_init", (unsigned long, unsigned long), (unsigned long)(heap), size)
#define JAVA_ALLOC(block, size) \
  JAVA("__tsan_java_alloc", (unsigned long, unsigned long), (unsigned long)(block), size)
#define JAVA_FREE(block, size) \
  JAVA("__tsan_java_free", (unsigned long, unsigned long), (unsigned long)(block), size)
#define JAVA_MOVE(from, to, size)                                                                \
  JAVA("__tsan_java_move", (unsigned long, unsigned long, unsigned long), (unsigned long)(from), \
       (unsigned long)(to), size)
#define JAVA_FINALIZE() JAVA("__tsan_java_finalize", (void))
#define JAVA_LOCK(mutex) JAVA("__tsan_java_mutex_lock", (unsigned long), (unsigned long)(mutex))
#define JAVA_UNLOCK(mutex) JAVA("__tsan_java_mutex_unlock", (unsigned long), (unsigned long)(mutex))
#define JAVA_ACQUIRE(object) JAVA("__tsan_java_acquire", (unsigned long), (unsigned long)(object))
#define JAVA_RELEASE(object) JAVA("__tsan_java_release", (unsigned long), (unsigned long)(object))

#endif  // TRAPLINE_TESTS_RACES_RUNTIMES_JAVA_H_
