/* The functions the library stands in front of, and pointers to the next definition of each in the
 * order of symbol search.
 *
 * LIBC(name): always there. OPTIONAL(group, name): there when the group's library is; found when
 * the program starts or, if its library comes later by dlopen, at the first call. A version is
 * given where the library has several of different behaviour. */
#ifndef TRAPLINE_GUEST_AGENT_PRELOAD_REAL_FUNCTIONS_H_
#define TRAPLINE_GUEST_AGENT_PRELOAD_REAL_FUNCTIONS_H_

#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <threads.h>

#include "guest-agent/preload/declarations.h"

/* The allocator comes first: looking up the others may allocate. */
#define ALLOCATOR_FUNCTIONS(LIBC, LIBC_VERSION) \
  LIBC(malloc)                                  \
  LIBC(free)                                    \
  LIBC(calloc)                                  \
  LIBC(realloc)                                 \
  LIBC(malloc_usable_size)                      \
  LIBC(memalign)                                \
  LIBC(posix_memalign)                          \
  LIBC(aligned_alloc)                           \
  LIBC(valloc)                                  \
  LIBC(pvalloc)

#define THREAD_FUNCTIONS(LIBC, LIBC_VERSION) \
  LIBC(pthread_create)                       \
  LIBC(pthread_join)                         \
  LIBC(pthread_tryjoin_np)                   \
  LIBC(pthread_timedjoin_np)                 \
  LIBC(pthread_clockjoin_np)                 \
  LIBC(pthread_detach)                       \
  LIBC(pthread_setname_np)                   \
  LIBC(thrd_create)                          \
  LIBC(thrd_join)                            \
  LIBC(thrd_detach)

#define SYNCHRONISATION_FUNCTIONS(LIBC, LIBC_VERSION) \
  LIBC(pthread_mutex_lock)                            \
  LIBC(pthread_mutex_trylock)                         \
  LIBC(pthread_mutex_timedlock)                       \
  LIBC(pthread_mutex_clocklock)                       \
  LIBC(pthread_mutex_unlock)                          \
  LIBC(pthread_mutex_destroy)                         \
  LIBC(pthread_rwlock_rdlock)                         \
  LIBC(pthread_rwlock_tryrdlock)                      \
  LIBC(pthread_rwlock_timedrdlock)                    \
  LIBC(pthread_rwlock_clockrdlock)                    \
  LIBC(pthread_rwlock_wrlock)                         \
  LIBC(pthread_rwlock_trywrlock)                      \
  LIBC(pthread_rwlock_timedwrlock)                    \
  LIBC(pthread_rwlock_clockwrlock)                    \
  LIBC(pthread_rwlock_unlock)                         \
  LIBC(pthread_rwlock_destroy)                        \
  LIBC(pthread_spin_lock)                             \
  LIBC(pthread_spin_trylock)                          \
  LIBC(pthread_spin_unlock)                           \
  LIBC(pthread_spin_destroy)                          \
  LIBC(pthread_barrier_wait)                          \
  LIBC(pthread_barrier_destroy)                       \
  LIBC_VERSION(pthread_cond_wait, "GLIBC_2.3.2")      \
  LIBC_VERSION(pthread_cond_timedwait, "GLIBC_2.3.2") \
  LIBC(pthread_cond_clockwait)                        \
  LIBC(pthread_once)                                  \
  LIBC(sem_post)                                      \
  LIBC(sem_wait)                                      \
  LIBC(sem_trywait)                                   \
  LIBC(sem_timedwait)                                 \
  LIBC(sem_clockwait)                                 \
  LIBC(sem_destroy)                                   \
  LIBC(mtx_lock)                                      \
  LIBC(mtx_trylock)                                   \
  LIBC(mtx_timedlock)                                 \
  LIBC(mtx_unlock)                                    \
  LIBC(mtx_destroy)                                   \
  LIBC(cnd_wait)                                      \
  LIBC(cnd_timedwait)                                 \
  LIBC(call_once)                                     \
  LIBC(flockfile)                                     \
  LIBC(ftrylockfile)                                  \
  LIBC(funlockfile)

/* memcpy is done by memmove. */
#define MEMORY_FUNCTIONS(LIBC, LIBC_VERSION) \
  LIBC(memmove)                              \
  LIBC(mempcpy)                              \
  LIBC(memset)                               \
  LIBC(memcmp)                               \
  LIBC(memchr)                               \
  LIBC(memrchr)                              \
  LIBC(rawmemchr)                            \
  LIBC(memccpy)                              \
  LIBC(memmem)                               \
  LIBC(explicit_bzero)                       \
  LIBC(__memcpy_chk)                         \
  LIBC(__memmove_chk)                        \
  LIBC(__mempcpy_chk)                        \
  LIBC(__memset_chk)

#define STRING_FUNCTIONS(LIBC, LIBC_VERSION) \
  LIBC(strlen)                               \
  LIBC(strnlen)                              \
  LIBC(strcmp)                               \
  LIBC(strncmp)                              \
  LIBC(strcasecmp)                           \
  LIBC(strncasecmp)                          \
  LIBC(strcoll)                              \
  LIBC(strchr)                               \
  LIBC(strchrnul)                            \
  LIBC(strrchr)                              \
  LIBC(strstr)                               \
  LIBC(strcasestr)                           \
  LIBC(strspn)                               \
  LIBC(strcspn)                              \
  LIBC(strpbrk)                              \
  LIBC(strcpy)                               \
  LIBC(stpcpy)                               \
  LIBC(strncpy)                              \
  LIBC(stpncpy)                              \
  LIBC(strcat)                               \
  LIBC(strncat)                              \
  LIBC(__strcpy_chk)                         \
  LIBC(__stpcpy_chk)                         \
  LIBC(__strncpy_chk)                        \
  LIBC(__stpncpy_chk)                        \
  LIBC(__strcat_chk)                         \
  LIBC(__strncat_chk)                        \
  LIBC(strdup)                               \
  LIBC(strndup)                              \
  LIBC(strtok)                               \
  LIBC(strtok_r)                             \
  LIBC(strsep)                               \
  LIBC(strtod)                               \
  LIBC(strtof)                               \
  LIBC(strtold)                              \
  LIBC(strtol)                               \
  LIBC(strtoul)                              \
  LIBC(strtoll)                              \
  LIBC(strtoull)

#define STREAM_FUNCTIONS(LIBC, LIBC_VERSION) \
  LIBC(vprintf)                              \
  LIBC(vfprintf)                             \
  LIBC(vdprintf)                             \
  LIBC(vsprintf)                             \
  LIBC(vsnprintf)                            \
  LIBC(vasprintf)                            \
  LIBC(__vprintf_chk)                        \
  LIBC(__vfprintf_chk)                       \
  LIBC(__vdprintf_chk)                       \
  LIBC(__vsprintf_chk)                       \
  LIBC(__vsnprintf_chk)                      \
  LIBC(__vasprintf_chk)                      \
  LIBC(puts)                                 \
  LIBC(fputs)                                \
  LIBC(fputs_unlocked)                       \
  LIBC(fwrite)                               \
  LIBC(fwrite_unlocked)                      \
  LIBC(fread)                                \
  LIBC(fread_unlocked)                       \
  LIBC(__fread_chk)                          \
  LIBC(__fread_unlocked_chk)                 \
  LIBC(fgets)                                \
  LIBC(fgets_unlocked)                       \
  LIBC(__fgets_chk)                          \
  LIBC(__fgets_unlocked_chk)                 \
  LIBC(getdelim)                             \
  LIBC(getline)

/* Groups are probed by their first function. */
#define CXX_FUNCTIONS(OPTIONAL, OPTIONAL_VERSION) \
  OPTIONAL(_Znwm)                                 \
  OPTIONAL(_Znam)                                 \
  OPTIONAL(_ZnwmRKSt9nothrow_t)                   \
  OPTIONAL(_ZnamRKSt9nothrow_t)                   \
  OPTIONAL(_ZnwmSt11align_val_t)                  \
  OPTIONAL(_ZnamSt11align_val_t)                  \
  OPTIONAL(_ZnwmSt11align_val_tRKSt9nothrow_t)    \
  OPTIONAL(_ZnamSt11align_val_tRKSt9nothrow_t)    \
  OPTIONAL(_ZdlPv)                                \
  OPTIONAL(_ZdaPv)                                \
  OPTIONAL(_ZdlPvm)                               \
  OPTIONAL(_ZdaPvm)                               \
  OPTIONAL(_ZdlPvRKSt9nothrow_t)                  \
  OPTIONAL(_ZdaPvRKSt9nothrow_t)                  \
  OPTIONAL(_ZdlPvSt11align_val_t)                 \
  OPTIONAL(_ZdaPvSt11align_val_t)                 \
  OPTIONAL(_ZdlPvmSt11align_val_t)                \
  OPTIONAL(_ZdaPvmSt11align_val_t)                \
  OPTIONAL(_ZdlPvSt11align_val_tRKSt9nothrow_t)   \
  OPTIONAL(_ZdaPvSt11align_val_tRKSt9nothrow_t)   \
  OPTIONAL(__cxa_guard_acquire)                   \
  OPTIONAL(__cxa_guard_release)

#define DECLARE(name) __typeof__(name)* name;
#define DECLARE_VERSION(name, version) __typeof__(name)* name;

struct RealFunctions {
  ALLOCATOR_FUNCTIONS(DECLARE, DECLARE_VERSION)
  THREAD_FUNCTIONS(DECLARE, DECLARE_VERSION)
  SYNCHRONISATION_FUNCTIONS(DECLARE, DECLARE_VERSION)
  MEMORY_FUNCTIONS(DECLARE, DECLARE_VERSION)
  STRING_FUNCTIONS(DECLARE, DECLARE_VERSION)
  STREAM_FUNCTIONS(DECLARE, DECLARE_VERSION)
  CXX_FUNCTIONS(DECLARE, DECLARE_VERSION)
};

#undef DECLARE
#undef DECLARE_VERSION

__attribute__((visibility("hidden"))) extern struct RealFunctions real;

#endif
