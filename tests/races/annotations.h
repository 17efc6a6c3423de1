// The annotations programs carry for dynamic tools, looked up at run time: without a tool they do
// nothing.
#ifndef TRAPLINE_TESTS_RACES_ANNOTATIONS_H_
#define TRAPLINE_TESTS_RACES_ANNOTATIONS_H_

#include <dlfcn.h>

// Calls NAME(__FILE__, __LINE__, ARGUMENTS...), if a tool has put it there.
#define ANNOTATE(name, type, ...)                                     \
  do {                                                                \
    void(*annotation) type = (void(*) type)dlsym(RTLD_DEFAULT, name); \
    if (annotation != (void(*) type)0) {                              \
      annotation(__FILE__, __LINE__ __VA_OPT__(, ) __VA_ARGS__);      \
    }                                                                 \
  } while (0)

#define ANNOTATE_HAPPENS_BEFORE(address) \
  ANNOTATE("AnnotateHappensBefore", (const char*, int, const volatile void*), address)
#define ANNOTATE_HAPPENS_AFTER(address) \
  ANNOTATE("AnnotateHappensAfter", (const char*, int, const volatile void*), address)
#define ANNOTATE_IGNORE_READS_BEGIN() ANNOTATE("AnnotateIgnoreReadsBegin", (const char*, int))
#define ANNOTATE_IGNORE_READS_END() ANNOTATE("AnnotateIgnoreReadsEnd", (const char*, int))
#define ANNOTATE_IGNORE_WRITES_BEGIN() ANNOTATE("AnnotateIgnoreWritesBegin", (const char*, int))
#define ANNOTATE_IGNORE_WRITES_END() ANNOTATE("AnnotateIgnoreWritesEnd", (const char*, int))
#define ANNOTATE_BENIGN_RACE(address, why)                                                       \
  ANNOTATE("AnnotateBenignRace", (const char*, int, const volatile void*, const char*), address, \
           why)
#define ANNOTATE_BENIGN_RACE_SIZED(address, size, why)                                             \
  ANNOTATE("AnnotateBenignRaceSized", (const char*, int, const volatile void*, long, const char*), \
           address, size, why)
#define ANNOTATE_RWLOCK_CREATE(lock) \
  ANNOTATE("AnnotateRWLockCreate", (const char*, int, const volatile void*), lock)
#define ANNOTATE_RWLOCK_DESTROY(lock) \
  ANNOTATE("AnnotateRWLockDestroy", (const char*, int, const volatile void*), lock)
#define ANNOTATE_RWLOCK_ACQUIRED(lock, is_write) \
  ANNOTATE("AnnotateRWLockAcquired", (const char*, int, const volatile void*, long), lock, is_write)
#define ANNOTATE_RWLOCK_RELEASED(lock, is_write) \
  ANNOTATE("AnnotateRWLockReleased", (const char*, int, const volatile void*, long), lock, is_write)

// Calls NAME(ADDRESS), as __tsan_acquire and __tsan_release are called.
#define CALL_IF_THERE(name, address)                                      \
  do {                                                                    \
    void (*function)(void*) = (void (*)(void*))dlsym(RTLD_DEFAULT, name); \
    if (function != (void (*)(void*))0) function(address);                \
  } while (0)

#endif  // TRAPLINE_TESTS_RACES_ANNOTATIONS_H_
