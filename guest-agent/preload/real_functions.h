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

#include "guest-agent/preload/allocators.h"
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
  LIBC(pthread_exit)                         \
  LIBC(thrd_create)                          \
  LIBC(thrd_join)                            \
  LIBC(thrd_detach)                          \
  LIBC(thrd_exit)                            \
  LIBC(exit)                                 \
  LIBC(__cxa_atexit)

#define SYNCHRONISATION_FUNCTIONS(LIBC, LIBC_VERSION) \
  LIBC(pthread_mutex_lock)                            \
  LIBC(pthread_mutex_trylock)                         \
  LIBC(pthread_mutex_timedlock)                       \
  LIBC(pthread_mutex_clocklock)                       \
  LIBC(pthread_mutex_unlock)                          \
  LIBC(pthread_mutex_init)                            \
  LIBC(pthread_mutex_destroy)                         \
  LIBC(pthread_rwlock_init)                           \
  LIBC(pthread_spin_init)                             \
  LIBC(pthread_barrier_init)                          \
  LIBC_VERSION(pthread_cond_init, "GLIBC_2.3.2")      \
  LIBC_VERSION(pthread_cond_destroy, "GLIBC_2.3.2")   \
  LIBC_VERSION(pthread_cond_signal, "GLIBC_2.3.2")    \
  LIBC_VERSION(pthread_cond_broadcast, "GLIBC_2.3.2") \
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

/* Groups are probed by their first function. __cxa_get_globals is asked, not stood in front of. */
#define CXX_FUNCTIONS(OPTIONAL, OPTIONAL_VERSION)             \
  OPTIONAL(_Znwm)                                             \
  OPTIONAL(_Znam)                                             \
  OPTIONAL(_ZnwmRKSt9nothrow_t)                               \
  OPTIONAL(_ZnamRKSt9nothrow_t)                               \
  OPTIONAL(_ZnwmSt11align_val_t)                              \
  OPTIONAL(_ZnamSt11align_val_t)                              \
  OPTIONAL(_ZnwmSt11align_val_tRKSt9nothrow_t)                \
  OPTIONAL(_ZnamSt11align_val_tRKSt9nothrow_t)                \
  OPTIONAL(_ZdlPv)                                            \
  OPTIONAL(_ZdaPv)                                            \
  OPTIONAL(_ZdlPvm)                                           \
  OPTIONAL(_ZdaPvm)                                           \
  OPTIONAL(_ZdlPvRKSt9nothrow_t)                              \
  OPTIONAL(_ZdaPvRKSt9nothrow_t)                              \
  OPTIONAL(_ZdlPvSt11align_val_t)                             \
  OPTIONAL(_ZdaPvSt11align_val_t)                             \
  OPTIONAL(_ZdlPvmSt11align_val_t)                            \
  OPTIONAL(_ZdaPvmSt11align_val_t)                            \
  OPTIONAL(_ZdlPvSt11align_val_tRKSt9nothrow_t)               \
  OPTIONAL(_ZdaPvSt11align_val_tRKSt9nothrow_t)               \
  OPTIONAL(__cxa_guard_acquire)                               \
  OPTIONAL(__cxa_guard_abort)                                 \
  OPTIONAL(__cxa_guard_release)                               \
  OPTIONAL(_Unwind_RaiseException)                            \
  OPTIONAL(__cxa_get_globals)                                 \
  OPTIONAL(__cxa_end_catch)                                   \
  OPTIONAL(_ZSt17current_exceptionv)                          \
  OPTIONAL(_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv) \
  OPTIONAL(_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv)

/* LLVM's C++ library. */
#define LIBCXX_FUNCTIONS(OPTIONAL, OPTIONAL_VERSION)                                    \
  OPTIONAL(_ZNSt3__119__shared_weak_count14__release_weakEv)                            \
  OPTIONAL(__cxa_increment_exception_refcount)                                          \
  OPTIONAL(__cxa_decrement_exception_refcount)                                          \
  OPTIONAL(_ZNSt3__119__shared_mutex_base4lockEv)                                       \
  OPTIONAL(_ZNSt3__119__shared_mutex_base8try_lockEv)                                   \
  OPTIONAL(_ZNSt3__119__shared_mutex_base6unlockEv)                                     \
  OPTIONAL(_ZNSt3__119__shared_mutex_base11lock_sharedEv)                               \
  OPTIONAL(_ZNSt3__119__shared_mutex_base15try_lock_sharedEv)                           \
  OPTIONAL(_ZNSt3__119__shared_mutex_base13unlock_sharedEv)                             \
  OPTIONAL(_ZNSt3__131__arrive_barrier_algorithm_baseEPNS_24__barrier_algorithm_baseEh) \
  OPTIONAL(_ZNSt3__111__call_onceERVmPvPFvS2_E)

/* omp_get_num_threads is asked, not stood in front of. Locks have an older form, too. */
#define GOMP_FUNCTIONS(OPTIONAL, OPTIONAL_VERSION)        \
  OPTIONAL(GOMP_parallel)                                 \
  OPTIONAL(GOMP_parallel_sections)                        \
  OPTIONAL(GOMP_parallel_reductions)                      \
  OPTIONAL(GOMP_parallel_loop_static)                     \
  OPTIONAL(GOMP_parallel_loop_dynamic)                    \
  OPTIONAL(GOMP_parallel_loop_guided)                     \
  OPTIONAL(GOMP_parallel_loop_nonmonotonic_dynamic)       \
  OPTIONAL(GOMP_parallel_loop_nonmonotonic_guided)        \
  OPTIONAL(GOMP_parallel_loop_runtime)                    \
  OPTIONAL(GOMP_parallel_loop_nonmonotonic_runtime)       \
  OPTIONAL(GOMP_parallel_loop_maybe_nonmonotonic_runtime) \
  OPTIONAL(GOMP_parallel_start)                           \
  OPTIONAL(GOMP_parallel_loop_static_start)               \
  OPTIONAL(GOMP_parallel_loop_dynamic_start)              \
  OPTIONAL(GOMP_parallel_loop_guided_start)               \
  OPTIONAL(GOMP_parallel_loop_runtime_start)              \
  OPTIONAL(GOMP_parallel_sections_start)                  \
  OPTIONAL(GOMP_parallel_end)                             \
  OPTIONAL(GOMP_barrier)                                  \
  OPTIONAL(GOMP_barrier_cancel)                           \
  OPTIONAL(GOMP_loop_end)                                 \
  OPTIONAL(GOMP_loop_end_cancel)                          \
  OPTIONAL(GOMP_workshare_task_reduction_unregister)      \
  OPTIONAL(GOMP_sections_end)                             \
  OPTIONAL(GOMP_sections_end_cancel)                      \
  OPTIONAL(GOMP_single_copy_start)                        \
  OPTIONAL(GOMP_single_copy_end)                          \
  OPTIONAL(GOMP_ordered_start)                            \
  OPTIONAL(GOMP_ordered_end)                              \
  OPTIONAL(GOMP_doacross_post)                            \
  OPTIONAL(GOMP_doacross_wait)                            \
  OPTIONAL(GOMP_doacross_ull_post)                        \
  OPTIONAL(GOMP_doacross_ull_wait)                        \
  OPTIONAL(GOMP_critical_start)                           \
  OPTIONAL(GOMP_critical_end)                             \
  OPTIONAL(GOMP_critical_name_start)                      \
  OPTIONAL(GOMP_critical_name_end)                        \
  OPTIONAL(GOMP_atomic_start)                             \
  OPTIONAL(GOMP_atomic_end)                               \
  OPTIONAL(GOMP_task)                                     \
  OPTIONAL(GOMP_taskloop)                                 \
  OPTIONAL(GOMP_taskloop_ull)                             \
  OPTIONAL(GOMP_taskwait)                                 \
  OPTIONAL(GOMP_taskwait_depend)                          \
  OPTIONAL(GOMP_taskgroup_start)                          \
  OPTIONAL(GOMP_taskgroup_end)                            \
  OPTIONAL(GOMP_task_reduction_remap)                     \
  OPTIONAL(omp_fulfill_event)                             \
  OPTIONAL(omp_fulfill_event_)                            \
  OPTIONAL(omp_get_num_threads)                           \
  OPTIONAL(omp_get_thread_num)                            \
  OPTIONAL(omp_get_thread_num_)                           \
  OPTIONAL_VERSION(omp_set_lock, "OMP_3.0")               \
  OPTIONAL_VERSION(omp_set_lock_, "OMP_3.0")              \
  OPTIONAL_VERSION(omp_set_nest_lock, "OMP_3.0")          \
  OPTIONAL_VERSION(omp_set_nest_lock_, "OMP_3.0")         \
  OPTIONAL_VERSION(omp_unset_lock, "OMP_3.0")             \
  OPTIONAL_VERSION(omp_unset_lock_, "OMP_3.0")            \
  OPTIONAL_VERSION(omp_unset_nest_lock, "OMP_3.0")        \
  OPTIONAL_VERSION(omp_unset_nest_lock_, "OMP_3.0")       \
  OPTIONAL_VERSION(omp_test_lock, "OMP_3.0")              \
  OPTIONAL_VERSION(omp_test_lock_, "OMP_3.0")             \
  OPTIONAL_VERSION(omp_test_nest_lock, "OMP_3.0")         \
  OPTIONAL_VERSION(omp_test_nest_lock_, "OMP_3.0")        \
  OPTIONAL_VERSION(omp_destroy_lock, "OMP_3.0")           \
  OPTIONAL_VERSION(omp_destroy_lock_, "OMP_3.0")          \
  OPTIONAL_VERSION(omp_destroy_nest_lock, "OMP_3.0")      \
  OPTIONAL_VERSION(omp_destroy_nest_lock_, "OMP_3.0")

#define KMP_FUNCTIONS(OPTIONAL, OPTIONAL_VERSION) \
  OPTIONAL(__kmpc_critical)                       \
  OPTIONAL(__kmpc_omp_task_alloc)                 \
  OPTIONAL(__kmpc_task_reduction_get_th_data)     \
  OPTIONAL(__kmpc_critical_with_hint)             \
  OPTIONAL(__kmpc_end_critical)                   \
  OPTIONAL(__kmpc_ordered)                        \
  OPTIONAL(__kmpc_end_ordered)                    \
  OPTIONAL(__kmpc_doacross_post)                  \
  OPTIONAL(__kmpc_doacross_wait)                  \
  OPTIONAL(__kmpc_reduce)                         \
  OPTIONAL(__kmpc_reduce_nowait)                  \
  OPTIONAL(__kmpc_end_reduce)                     \
  OPTIONAL(__kmpc_end_reduce_nowait)

/* Those that say how large a block is are asked, not stood in front of. */
#define MIMALLOC_FUNCTIONS(OPTIONAL, OPTIONAL_VERSION)             \
  MIMALLOC_BLOCK_FUNCTIONS(OPTIONAL, OPTIONAL, OPTIONAL, OPTIONAL) \
  OPTIONAL(mi_usable_size)

#define JEMALLOC_FUNCTIONS(OPTIONAL, OPTIONAL_VERSION)             \
  JEMALLOC_BLOCK_FUNCTIONS(OPTIONAL, OPTIONAL, OPTIONAL, OPTIONAL) \
  OPTIONAL(sallocx)

#define PREFIXED_JEMALLOC_FUNCTIONS(OPTIONAL, OPTIONAL_VERSION)             \
  PREFIXED_JEMALLOC_BLOCK_FUNCTIONS(OPTIONAL, OPTIONAL, OPTIONAL, OPTIONAL) \
  OPTIONAL(je_sallocx)

#define TCMALLOC_FUNCTIONS(OPTIONAL, OPTIONAL_VERSION)             \
  TCMALLOC_BLOCK_FUNCTIONS(OPTIONAL, OPTIONAL, OPTIONAL, OPTIONAL) \
  OPTIONAL(tc_malloc_size)

#define OPENMP_ALLOCATOR_FUNCTIONS(OPTIONAL, OPTIONAL_VERSION) \
  OPENMP_BLOCK_FUNCTIONS(OPTIONAL, OPTIONAL, OPTIONAL, OPTIONAL)

#define KMP_ALLOCATOR_FUNCTIONS(OPTIONAL, OPTIONAL_VERSION) \
  KMP_BLOCK_FUNCTIONS(OPTIONAL, OPTIONAL, OPTIONAL, OPTIONAL)

#define ANNOTATION_FUNCTIONS(OPTIONAL, OPTIONAL_VERSION) \
  OPTIONAL(AnnotateHappensBefore)                        \
  OPTIONAL(AnnotateHappensAfter)                         \
  OPTIONAL(WTFAnnotateHappensBefore)                     \
  OPTIONAL(WTFAnnotateHappensAfter)                      \
  OPTIONAL(AnnotateCondVarSignal)                        \
  OPTIONAL(AnnotateCondVarSignalAll)                     \
  OPTIONAL(AnnotateCondVarWait)                          \
  OPTIONAL(AnnotatePCQCreate)                            \
  OPTIONAL(AnnotatePCQDestroy)                           \
  OPTIONAL(AnnotatePCQPut)                               \
  OPTIONAL(AnnotatePCQGet)                               \
  OPTIONAL(AnnotateRWLockCreate)                         \
  OPTIONAL(AnnotateRWLockCreateStatic)                   \
  OPTIONAL(AnnotateRWLockDestroy)                        \
  OPTIONAL(AnnotateRWLockAcquired)                       \
  OPTIONAL(AnnotateRWLockReleased)                       \
  OPTIONAL(AnnotateBarrierInit)                          \
  OPTIONAL(AnnotateBarrierWaitBefore)                    \
  OPTIONAL(AnnotateBarrierWaitAfter)                     \
  OPTIONAL(AnnotateBarrierDestroy)                       \
  OPTIONAL(AnnotateIgnoreReadsBegin)                     \
  OPTIONAL(AnnotateIgnoreReadsEnd)                       \
  OPTIONAL(AnnotateIgnoreWritesBegin)                    \
  OPTIONAL(AnnotateIgnoreWritesEnd)                      \
  OPTIONAL(AnnotateIgnoreSyncBegin)                      \
  OPTIONAL(AnnotateIgnoreSyncEnd)                        \
  OPTIONAL(AnnotateBenignRace)                           \
  OPTIONAL(AnnotateBenignRaceSized)                      \
  OPTIONAL(WTFAnnotateBenignRaceSized)                   \
  OPTIONAL(AnnotateNewMemory)                            \
  OPTIONAL(AnnotatePublishMemoryRange)                   \
  OPTIONAL(AnnotateUnpublishMemoryRange)                 \
  OPTIONAL(AnnotateThreadName)                           \
  OPTIONAL(AnnotateExpectRace)                           \
  OPTIONAL(AnnotateFlushExpectedRaces)                   \
  OPTIONAL(AnnotateFlushState)                           \
  OPTIONAL(AnnotateEnableRaceDetection)                  \
  OPTIONAL(AnnotateTraceMemory)                          \
  OPTIONAL(AnnotateMutexIsUsedAsCondVar)                 \
  OPTIONAL(AnnotateMutexIsNotPHB)                        \
  OPTIONAL(AnnotateNoOp)

#define TSAN_FUNCTIONS(OPTIONAL, OPTIONAL_VERSION) \
  OPTIONAL(__tsan_acquire)                         \
  OPTIONAL(__tsan_release)                         \
  OPTIONAL(__tsan_mutex_create)                    \
  OPTIONAL(__tsan_mutex_destroy)                   \
  OPTIONAL(__tsan_mutex_pre_lock)                  \
  OPTIONAL(__tsan_mutex_post_lock)                 \
  OPTIONAL(__tsan_mutex_pre_unlock)                \
  OPTIONAL(__tsan_mutex_post_unlock)               \
  OPTIONAL(__tsan_mutex_pre_signal)                \
  OPTIONAL(__tsan_mutex_post_signal)               \
  OPTIONAL(__tsan_mutex_pre_divert)                \
  OPTIONAL(__tsan_mutex_post_divert)               \
  OPTIONAL(__tsan_get_current_fiber)               \
  OPTIONAL(__tsan_create_fiber)                    \
  OPTIONAL(__tsan_destroy_fiber)                   \
  OPTIONAL(__tsan_switch_to_fiber)                 \
  OPTIONAL(__tsan_set_fiber_name)                  \
  OPTIONAL(__tsan_java_init)                       \
  OPTIONAL(__tsan_java_fini)                       \
  OPTIONAL(__tsan_java_alloc)                      \
  OPTIONAL(__tsan_java_free)                       \
  OPTIONAL(__tsan_java_move)                       \
  OPTIONAL(__tsan_java_finalize)                   \
  OPTIONAL(__tsan_java_mutex_lock)                 \
  OPTIONAL(__tsan_java_mutex_unlock)               \
  OPTIONAL(__tsan_java_mutex_read_lock)            \
  OPTIONAL(__tsan_java_mutex_read_unlock)          \
  OPTIONAL(__tsan_java_mutex_lock_rec)             \
  OPTIONAL(__tsan_java_mutex_unlock_rec)           \
  OPTIONAL(__tsan_java_acquire)                    \
  OPTIONAL(__tsan_java_release)                    \
  OPTIONAL(__tsan_java_release_store)

#define DECLARE(name, ...) __typeof__(name)* name;
#define DECLARE_VERSION(name, version) __typeof__(name)* name;

struct RealFunctions {
  ALLOCATOR_FUNCTIONS(DECLARE, DECLARE_VERSION)
  THREAD_FUNCTIONS(DECLARE, DECLARE_VERSION)
  SYNCHRONISATION_FUNCTIONS(DECLARE, DECLARE_VERSION)
  MEMORY_FUNCTIONS(DECLARE, DECLARE_VERSION)
  STRING_FUNCTIONS(DECLARE, DECLARE_VERSION)
  STREAM_FUNCTIONS(DECLARE, DECLARE_VERSION)
  CXX_FUNCTIONS(DECLARE, DECLARE_VERSION)
  LIBCXX_FUNCTIONS(DECLARE, DECLARE_VERSION)
  GOMP_FUNCTIONS(DECLARE, DECLARE_VERSION)
  KMP_FUNCTIONS(DECLARE, DECLARE_VERSION)
  MIMALLOC_FUNCTIONS(DECLARE, DECLARE_VERSION)
  JEMALLOC_FUNCTIONS(DECLARE, DECLARE_VERSION)
  PREFIXED_JEMALLOC_FUNCTIONS(DECLARE, DECLARE_VERSION)
  TCMALLOC_FUNCTIONS(DECLARE, DECLARE_VERSION)
  OPENMP_ALLOCATOR_FUNCTIONS(DECLARE, DECLARE_VERSION)
  KMP_ALLOCATOR_FUNCTIONS(DECLARE, DECLARE_VERSION)
  ANNOTATION_FUNCTIONS(DECLARE, DECLARE_VERSION)
  TSAN_FUNCTIONS(DECLARE, DECLARE_VERSION)
};

#undef DECLARE
#undef DECLARE_VERSION

__attribute__((visibility("hidden"))) extern struct RealFunctions real;

#endif
