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
  CXX_FUNCTIONS(DECLARE, DECLARE_VERSION)
};

#undef DECLARE
#undef DECLARE_VERSION

__attribute__((visibility("hidden"))) extern struct RealFunctions real;

#endif
