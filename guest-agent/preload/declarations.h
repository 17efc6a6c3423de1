/* Functions that no C header declares: of the C++ runtime, and those of libc that only the compiler
 * calls. */
#ifndef TRAPLINE_GUEST_AGENT_PRELOAD_DECLARATIONS_H_
#define TRAPLINE_GUEST_AGENT_PRELOAD_DECLARATIONS_H_

/* C, too: NOLINTBEGIN(modernize-deprecated-headers,modernize-use-nullptr) */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#define restrict __restrict
#endif

/* Of the Itanium C++ ABI, in libc. */
int __cxa_atexit(void (*handler)(void*), void* argument, void* library);

/* operator new, new[], delete, delete[] in the variants of [new.delete]: plain, nothrow, aligned,
 * sized (Itanium C++ ABI names; size_t is m, std::align_val_t and std::nothrow_t by name). */
void* _Znwm(size_t size);
void* _Znam(size_t size);
void* _ZnwmRKSt9nothrow_t(size_t size, const void* nothrow);
void* _ZnamRKSt9nothrow_t(size_t size, const void* nothrow);
void* _ZnwmSt11align_val_t(size_t size, size_t alignment);
void* _ZnamSt11align_val_t(size_t size, size_t alignment);
void* _ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void* nothrow);
void* _ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void* nothrow);
void _ZdlPv(void* block);
void _ZdaPv(void* block);
void _ZdlPvm(void* block, size_t size);
void _ZdaPvm(void* block, size_t size);
void _ZdlPvRKSt9nothrow_t(void* block, const void* nothrow);
void _ZdaPvRKSt9nothrow_t(void* block, const void* nothrow);
void _ZdlPvSt11align_val_t(void* block, size_t alignment);
void _ZdaPvSt11align_val_t(void* block, size_t alignment);
void _ZdlPvmSt11align_val_t(void* block, size_t size, size_t alignment);
void _ZdaPvmSt11align_val_t(void* block, size_t size, size_t alignment);
void _ZdlPvSt11align_val_tRKSt9nothrow_t(void* block, size_t alignment, const void* nothrow);
void _ZdaPvSt11align_val_tRKSt9nothrow_t(void* block, size_t alignment, const void* nothrow);

#ifndef __cplusplus /* which has its own */
/* Guards of static locals (Itanium C++ ABI 3.3.3). */
int __cxa_guard_acquire(uint64_t* guard);
void __cxa_guard_abort(uint64_t* guard);
void __cxa_guard_release(uint64_t* guard);
int _Unwind_RaiseException(void* exception);
/* What __cxa_get_globals has (Itanium C++ ABI, level 2, 2.2.2). */
struct ExceptionGlobals {
  const char* caught;
  unsigned uncaught;
};
struct ExceptionGlobals* __cxa_get_globals(void);
void __cxa_end_catch(void);
void* _ZSt17current_exceptionv(void* result); /* std::current_exception */
#endif

/* std::exception_ptr's, in GNU's library and in LLVM's. */
void _ZNSt15__exception_ptr13exception_ptr9_M_addrefEv(void* pointer);
void _ZNSt15__exception_ptr13exception_ptr10_M_releaseEv(void* pointer);
void __cxa_increment_exception_refcount(void* exception);
void __cxa_decrement_exception_refcount(void* exception);
/* LLVM's std::weak_ptr; std::barrier: whether the caller came last; std::shared_mutex;
 * std::call_once. */
void _ZNSt3__119__shared_weak_count14__release_weakEv(void* counts);
bool _ZNSt3__131__arrive_barrier_algorithm_baseEPNS_24__barrier_algorithm_baseEh(
    void* barrier, unsigned char phase);
void _ZNSt3__119__shared_mutex_base4lockEv(void* mutex);
bool _ZNSt3__119__shared_mutex_base8try_lockEv(void* mutex);
void _ZNSt3__119__shared_mutex_base6unlockEv(void* mutex);
void _ZNSt3__119__shared_mutex_base11lock_sharedEv(void* mutex);
bool _ZNSt3__119__shared_mutex_base15try_lock_sharedEv(void* mutex);
void _ZNSt3__119__shared_mutex_base13unlock_sharedEv(void* mutex);
void _ZNSt3__111__call_onceERVmPvPFvS2_E(volatile unsigned long* flag, void* argument,
                                         void (*function)(void*));

/* Checked variants (_FORTIFY_SOURCE): `capacity` is the size of the object written to, `flag`
 * says whether %n must be in read-only memory. */
void* __memcpy_chk(void* restrict to, const void* restrict from, size_t size, size_t capacity);
void* __memmove_chk(void* to, const void* from, size_t size, size_t capacity);
void* __mempcpy_chk(void* restrict to, const void* restrict from, size_t size, size_t capacity);
void* __memset_chk(void* to, int value, size_t size, size_t capacity);
char* __strcpy_chk(char* restrict to, const char* restrict from, size_t capacity);
char* __stpcpy_chk(char* restrict to, const char* restrict from, size_t capacity);
char* __strncpy_chk(char* restrict to, const char* restrict from, size_t limit, size_t capacity);
char* __stpncpy_chk(char* restrict to, const char* restrict from, size_t limit, size_t capacity);
char* __strcat_chk(char* restrict to, const char* restrict from, size_t capacity);
char* __strncat_chk(char* restrict to, const char* restrict from, size_t limit, size_t capacity);
int __printf_chk(int flag, const char* restrict format, ...);
int __fprintf_chk(FILE* restrict stream, int flag, const char* restrict format, ...);
int __dprintf_chk(int file, int flag, const char* restrict format, ...);
int __sprintf_chk(char* restrict buffer, int flag, size_t capacity, const char* restrict format,
                  ...);
int __snprintf_chk(char* restrict buffer, size_t size, int flag, size_t capacity,
                   const char* restrict format, ...);
int __asprintf_chk(char** restrict block, int flag, const char* restrict format, ...);
int __vprintf_chk(int flag, const char* restrict format, va_list arguments);
int __vfprintf_chk(FILE* restrict stream, int flag, const char* restrict format, va_list arguments);
int __vdprintf_chk(int file, int flag, const char* restrict format, va_list arguments);
int __vsprintf_chk(char* restrict buffer, int flag, size_t capacity, const char* restrict format,
                   va_list arguments);
int __vsnprintf_chk(char* restrict buffer, size_t size, int flag, size_t capacity,
                    const char* restrict format, va_list arguments);
int __vasprintf_chk(char** restrict block, int flag, const char* restrict format,
                    va_list arguments);
size_t __fread_chk(void* restrict block, size_t capacity, size_t size, size_t count,
                   FILE* restrict stream);
size_t __fread_unlocked_chk(void* restrict block, size_t capacity, size_t size, size_t count,
                            FILE* restrict stream);
char* __fgets_chk(char* restrict buffer, size_t capacity, int size, FILE* restrict stream);
char* __fgets_unlocked_chk(char* restrict buffer, size_t capacity, int size, FILE* restrict stream);
char* __strdup(const char* text);

/* libgomp: what GCC's code calls (its file libgomp_g.h), and locks. */
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
void GOMP_parallel_sections(void (*body)(void*), void* data, unsigned threads, unsigned count,
                            unsigned flags);
unsigned GOMP_parallel_reductions(void (*body)(void*), void* data, unsigned threads,
                                  unsigned flags);
void GOMP_parallel_loop_static(void (*body)(void*), void* data, unsigned threads, long begin,
                               long end, long step, long chunk, unsigned flags);
void GOMP_parallel_loop_dynamic(void (*body)(void*), void* data, unsigned threads, long begin,
                                long end, long step, long chunk, unsigned flags);
void GOMP_parallel_loop_guided(void (*body)(void*), void* data, unsigned threads, long begin,
                               long end, long step, long chunk, unsigned flags);
void GOMP_parallel_loop_nonmonotonic_dynamic(void (*body)(void*), void* data, unsigned threads,
                                             long begin, long end, long step, long chunk,
                                             unsigned flags);
void GOMP_parallel_loop_nonmonotonic_guided(void (*body)(void*), void* data, unsigned threads,
                                            long begin, long end, long step, long chunk,
                                            unsigned flags);
void GOMP_parallel_loop_runtime(void (*body)(void*), void* data, unsigned threads, long begin,
                                long end, long step, unsigned flags);
void GOMP_parallel_loop_nonmonotonic_runtime(void (*body)(void*), void* data, unsigned threads,
                                             long begin, long end, long step, unsigned flags);
void GOMP_parallel_loop_maybe_nonmonotonic_runtime(void (*body)(void*), void* data,
                                                   unsigned threads, long begin, long end,
                                                   long step, unsigned flags);
void GOMP_parallel_start(void (*body)(void*), void* data, unsigned threads);
void GOMP_parallel_loop_static_start(void (*body)(void*), void* data, unsigned threads, long begin,
                                     long end, long step, long chunk);
void GOMP_parallel_loop_dynamic_start(void (*body)(void*), void* data, unsigned threads, long begin,
                                      long end, long step, long chunk);
void GOMP_parallel_loop_guided_start(void (*body)(void*), void* data, unsigned threads, long begin,
                                     long end, long step, long chunk);
void GOMP_parallel_loop_runtime_start(void (*body)(void*), void* data, unsigned threads, long begin,
                                      long end, long step);
void GOMP_parallel_sections_start(void (*body)(void*), void* data, unsigned threads,
                                  unsigned count);
void GOMP_parallel_end(void);
void GOMP_barrier(void);
void GOMP_loop_end(void);
void GOMP_sections_end(void);
void GOMP_ordered_start(void);
void GOMP_ordered_end(void);
void GOMP_critical_start(void);
void GOMP_critical_end(void);
void GOMP_atomic_start(void);
void GOMP_atomic_end(void);
void GOMP_taskwait(void);
void GOMP_taskgroup_start(void);
void GOMP_taskgroup_end(void);
bool GOMP_barrier_cancel(void);
bool GOMP_loop_end_cancel(void);
void GOMP_workshare_task_reduction_unregister(bool cancelled);
bool GOMP_sections_end_cancel(void);
void* GOMP_single_copy_start(void);
void GOMP_single_copy_end(void* data);
void GOMP_doacross_post(long* counts);
/* Of variadic functions with as many arguments as the loop has dimensions, which only libgomp
 * knows: those beyond the registers, where the caller has them on the stack, and what lies behind
 * them. As much as any thread's stack has there. */
struct Dimensions {
  long words[128];
};
void GOMP_doacross_wait(long a, long b, long c, long d, long e, long f, struct Dimensions rest);
void GOMP_doacross_ull_post(unsigned long long* counts);
void GOMP_doacross_ull_wait(unsigned long long a, unsigned long long b, unsigned long long c,
                            unsigned long long d, unsigned long long e, unsigned long long f,
                            struct Dimensions rest);
void GOMP_critical_name_start(void** name);
void GOMP_critical_name_end(void** name);
void GOMP_task(void (*body)(void*), void* data, void (*copy)(void*, void*), long size,
               long alignment, bool deferred, unsigned flags, void** depend, int priority,
               void* detach);
void GOMP_taskloop(void (*body)(void*), void* data, void (*copy)(void*, void*), long size,
                   long alignment, unsigned flags, unsigned long tasks, int priority, long begin,
                   long end, long step);
void GOMP_taskloop_ull(void (*body)(void*), void* data, void (*copy)(void*, void*), long size,
                       long alignment, unsigned flags, unsigned long tasks, int priority,
                       unsigned long long begin, unsigned long long end, unsigned long long step);
void GOMP_taskwait_depend(void** depend);
void GOMP_task_reduction_remap(size_t count, size_t originals, void** variables);
void omp_fulfill_event(uint64_t event);
void omp_fulfill_event_(uint64_t event);
int omp_get_num_threads(void);
int omp_get_thread_num(void);
int omp_get_thread_num_(void);

/* LLVM's OpenMP. */
void* __kmpc_omp_task_alloc(void* location, int thread, int flags, size_t size,
                            size_t size_of_shared, int (*entry)(int, void*));
void* __kmpc_task_reduction_get_th_data(int thread, void* group, void* variable);
void __kmpc_critical(void* location, int thread, void* name);
void __kmpc_critical_with_hint(void* location, int thread, void* name, unsigned hint);
void __kmpc_end_critical(void* location, int thread, void* name);
void __kmpc_ordered(void* location, int thread);
void __kmpc_end_ordered(void* location, int thread);
void __kmpc_doacross_post(void* location, int thread, const void* iteration);
void __kmpc_doacross_wait(void* location, int thread, const void* iteration);
int __kmpc_reduce(void* location, int thread, int variables, size_t size, void* data,
                  void (*function)(void*, void*), void* lock);
int __kmpc_reduce_nowait(void* location, int thread, int variables, size_t size, void* data,
                         void (*function)(void*, void*), void* lock);
void __kmpc_end_reduce(void* location, int thread, void* lock);
void __kmpc_end_reduce_nowait(void* location, int thread, void* lock);
void omp_set_lock(void* lock);
void omp_set_lock_(void* lock);
void omp_set_nest_lock(void* lock);
void omp_set_nest_lock_(void* lock);
void omp_unset_lock(void* lock);
void omp_unset_lock_(void* lock);
void omp_unset_nest_lock(void* lock);
void omp_unset_nest_lock_(void* lock);
int omp_test_lock(void* lock);
int omp_test_lock_(void* lock);
int omp_test_nest_lock(void* lock);
int omp_test_nest_lock_(void* lock);
void omp_destroy_lock(void* lock);
void omp_destroy_lock_(void* lock);
void omp_destroy_nest_lock(void* lock);
void omp_destroy_nest_lock_(void* lock);

/* Annotations (dynamic_annotations.h, tsan_interface.h). */
void AnnotateHappensBefore(const char* file, int line, const volatile void* object);
void AnnotateHappensAfter(const char* file, int line, const volatile void* object);
void WTFAnnotateHappensBefore(const char* file, int line, const volatile void* object);
void WTFAnnotateHappensAfter(const char* file, int line, const volatile void* object);
void AnnotateCondVarSignal(const char* file, int line, const volatile void* condition);
void AnnotateCondVarSignalAll(const char* file, int line, const volatile void* condition);
void AnnotateCondVarWait(const char* file, int line, const volatile void* condition,
                         const volatile void* lock);
void AnnotatePCQCreate(const char* file, int line, const volatile void* queue);
void AnnotatePCQDestroy(const char* file, int line, const volatile void* queue);
void AnnotatePCQPut(const char* file, int line, const volatile void* queue);
void AnnotatePCQGet(const char* file, int line, const volatile void* queue);
void AnnotateRWLockCreate(const char* file, int line, const volatile void* lock);
void AnnotateRWLockCreateStatic(const char* file, int line, const volatile void* lock);
void AnnotateRWLockDestroy(const char* file, int line, const volatile void* lock);
void AnnotateRWLockAcquired(const char* file, int line, const volatile void* lock,
                            long for_writing);
void AnnotateRWLockReleased(const char* file, int line, const volatile void* lock,
                            long for_writing);
void AnnotateBarrierInit(const char* file, int line, const volatile void* barrier, long count,
                         long reinitialised);
void AnnotateBarrierWaitBefore(const char* file, int line, const volatile void* barrier);
void AnnotateBarrierWaitAfter(const char* file, int line, const volatile void* barrier);
void AnnotateBarrierDestroy(const char* file, int line, const volatile void* barrier);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
void AnnotateBenignRace(const char* file, int line, const volatile void* address,
                        const char* description);
void AnnotateBenignRaceSized(const char* file, int line, const volatile void* address, long size,
                             const char* description);
void WTFAnnotateBenignRaceSized(const char* file, int line, const volatile void* address, long size,
                                const char* description);
void AnnotateNewMemory(const char* file, int line, const volatile void* address, long size);
void AnnotatePublishMemoryRange(const char* file, int line, const volatile void* address,
                                long size);
void AnnotateUnpublishMemoryRange(const char* file, int line, const volatile void* address,
                                  long size);
void AnnotateThreadName(const char* file, int line, const char* name);
void AnnotateExpectRace(const char* file, int line, const volatile void* address,
                        const char* description);
void AnnotateFlushExpectedRaces(const char* file, int line);
void AnnotateFlushState(const char* file, int line);
void AnnotateEnableRaceDetection(const char* file, int line, int enable);
void AnnotateTraceMemory(const char* file, int line, const volatile void* address);
void AnnotateMutexIsUsedAsCondVar(const char* file, int line, const volatile void* mutex);
void AnnotateMutexIsNotPHB(const char* file, int line, const volatile void* mutex);
void AnnotateNoOp(const char* file, int line, const volatile void* argument);
void __tsan_acquire(void* object);
void __tsan_release(void* object);
void __tsan_mutex_create(void* mutex, unsigned flags);
void __tsan_mutex_destroy(void* mutex, unsigned flags);
void __tsan_mutex_pre_lock(void* mutex, unsigned flags);
void __tsan_mutex_post_lock(void* mutex, unsigned flags, int recursion);
int __tsan_mutex_pre_unlock(void* mutex, unsigned flags);
void __tsan_mutex_post_unlock(void* mutex, unsigned flags);
void __tsan_mutex_pre_signal(void* mutex, unsigned flags);
void __tsan_mutex_post_signal(void* mutex, unsigned flags);
void __tsan_mutex_pre_divert(void* mutex, unsigned flags);
void __tsan_mutex_post_divert(void* mutex, unsigned flags);
void* __tsan_get_current_fiber(void);
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_set_fiber_name(void* fiber, const char* name);
/* tsan_interface_java.h */
void __tsan_java_init(unsigned long heap, unsigned long size);
int __tsan_java_fini(void);
void __tsan_java_alloc(unsigned long block, unsigned long size);
void __tsan_java_free(unsigned long block, unsigned long size);
void __tsan_java_move(unsigned long from, unsigned long to, unsigned long size);
void __tsan_java_finalize(void);
void __tsan_java_mutex_lock(unsigned long mutex);
void __tsan_java_mutex_unlock(unsigned long mutex);
void __tsan_java_mutex_read_lock(unsigned long mutex);
void __tsan_java_mutex_read_unlock(unsigned long mutex);
void __tsan_java_mutex_lock_rec(unsigned long mutex, int count);
int __tsan_java_mutex_unlock_rec(unsigned long mutex);
void __tsan_java_acquire(unsigned long object);
void __tsan_java_release(unsigned long object);
void __tsan_java_release_store(unsigned long object);

#ifdef __cplusplus
#undef restrict
}
#endif

/* NOLINTEND(modernize-deprecated-headers,modernize-use-nullptr) */

#endif
