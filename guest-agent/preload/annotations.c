/* Annotations that programs already carry: those of Google's dynamic_annotations.h (also called
 * by WebKit's and Abseil's names) and of ThreadSanitizer's tsan_interface.h.
 *
 * They are reached where a program or a library leaves them undefined, or weak and found by symbol
 * search. A definition that follows this library, such as ThreadSanitizer's own, is called too. */
#include "guest-agent/preload/runtime.h"

/* Calls the next definition, if there is one. */
#define NEXT(name, ...) \
  if (real.name) real.name(__VA_ARGS__)

/* An annotation: what it reports, then the next definition. */
#define ANNOTATION(name, parameters, report, ...) \
  WRAPPER void name parameters {                  \
    Ready();                                      \
    (void)file;                                   \
    (void)line;                                   \
    report;                                       \
    NEXT(name, file, line, ##__VA_ARGS__);        \
  }

#define LOCATION const char *file, int line
#define REPORT(kind, object, size) Event(kind, object, size, CALLER)

/* -- Order -- */

ANNOTATION(AnnotateHappensBefore, (LOCATION, const volatile void* object),
           REPORT(TRAPLINE_HAPPENS_BEFORE, object, 0), object)
ANNOTATION(AnnotateHappensAfter, (LOCATION, const volatile void* object),
           REPORT(TRAPLINE_HAPPENS_AFTER, object, 0), object)
ANNOTATION(WTFAnnotateHappensBefore, (LOCATION, const volatile void* object),
           REPORT(TRAPLINE_HAPPENS_BEFORE, object, 0), object)
ANNOTATION(WTFAnnotateHappensAfter, (LOCATION, const volatile void* object),
           REPORT(TRAPLINE_HAPPENS_AFTER, object, 0), object)

/* Who writes this wants the order that condition variables do not give by themselves. */
ANNOTATION(AnnotateCondVarSignal, (LOCATION, const volatile void* condition),
           REPORT(TRAPLINE_HAPPENS_BEFORE, condition, 0), condition)
ANNOTATION(AnnotateCondVarSignalAll, (LOCATION, const volatile void* condition),
           REPORT(TRAPLINE_HAPPENS_BEFORE, condition, 0), condition)
ANNOTATION(AnnotateCondVarWait,
           (LOCATION, const volatile void* condition, const volatile void* lock),
           REPORT(TRAPLINE_HAPPENS_AFTER, condition, 0), condition, lock)

/* What was put into a queue happens before it is taken out. */
ANNOTATION(AnnotatePCQCreate, (LOCATION, const volatile void* queue), (void)0, queue)
ANNOTATION(AnnotatePCQDestroy, (LOCATION, const volatile void* queue),
           REPORT(TRAPLINE_SYNC_DESTROYED, queue, 0), queue)
ANNOTATION(AnnotatePCQPut, (LOCATION, const volatile void* queue),
           REPORT(TRAPLINE_HAPPENS_BEFORE, queue, 0), queue)
ANNOTATION(AnnotatePCQGet, (LOCATION, const volatile void* queue),
           REPORT(TRAPLINE_HAPPENS_AFTER, queue, 0), queue)

/* -- Locks and barriers -- */

ANNOTATION(AnnotateRWLockCreate, (LOCATION, const volatile void* lock), (void)0, lock)
ANNOTATION(AnnotateRWLockCreateStatic, (LOCATION, const volatile void* lock), (void)0, lock)
ANNOTATION(AnnotateRWLockDestroy, (LOCATION, const volatile void* lock),
           REPORT(TRAPLINE_SYNC_DESTROYED, lock, 0), lock)
ANNOTATION(AnnotateRWLockAcquired, (LOCATION, const volatile void* lock, long for_writing),
           REPORT(for_writing ? TRAPLINE_ACQUIRE : TRAPLINE_ACQUIRE_SHARED, lock,
                  TRAPLINE_LOCK_ANNOTATED),
           lock, for_writing)
ANNOTATION(AnnotateRWLockReleased, (LOCATION, const volatile void* lock, long for_writing),
           REPORT(for_writing ? TRAPLINE_RELEASE : TRAPLINE_RELEASE_SHARED, lock,
                  TRAPLINE_LOCK_ANNOTATED),
           lock, for_writing)

ANNOTATION(AnnotateBarrierInit,
           (LOCATION, const volatile void* barrier, long count, long reinitialised), (void)0,
           barrier, count, reinitialised)
ANNOTATION(AnnotateBarrierWaitBefore, (LOCATION, const volatile void* barrier),
           REPORT(TRAPLINE_BARRIER_ENTER, barrier, 0), barrier)
ANNOTATION(AnnotateBarrierWaitAfter, (LOCATION, const volatile void* barrier),
           REPORT(TRAPLINE_BARRIER_LEAVE, barrier, 0), barrier)
ANNOTATION(AnnotateBarrierDestroy, (LOCATION, const volatile void* barrier),
           REPORT(TRAPLINE_SYNC_DESTROYED, barrier, 0), barrier)

/* -- Accesses that do not count -- */

ANNOTATION(AnnotateIgnoreReadsBegin, (LOCATION), REPORT(TRAPLINE_IGNORE_BEGIN, NULL, kReads))
ANNOTATION(AnnotateIgnoreReadsEnd, (LOCATION), REPORT(TRAPLINE_IGNORE_END, NULL, kReads))
ANNOTATION(AnnotateIgnoreWritesBegin, (LOCATION), REPORT(TRAPLINE_IGNORE_BEGIN, NULL, kWrites))
ANNOTATION(AnnotateIgnoreWritesEnd, (LOCATION), REPORT(TRAPLINE_IGNORE_END, NULL, kWrites))
ANNOTATION(AnnotateIgnoreSyncBegin, (LOCATION), REPORT(TRAPLINE_IGNORE_SYNC_BEGIN, NULL, 0))
ANNOTATION(AnnotateIgnoreSyncEnd, (LOCATION), REPORT(TRAPLINE_IGNORE_SYNC_END, NULL, 0))

/* The size is not told: no more than a word is meant. */
ANNOTATION(AnnotateBenignRace, (LOCATION, const volatile void* address, const char* description),
           REPORT(TRAPLINE_BENIGN_RACE, address, sizeof(long)), address, description)
ANNOTATION(AnnotateBenignRaceSized,
           (LOCATION, const volatile void* address, long size, const char* description),
           REPORT(TRAPLINE_BENIGN_RACE, address, (uint64_t)size), address, size, description)
ANNOTATION(WTFAnnotateBenignRaceSized,
           (LOCATION, const volatile void* address, long size, const char* description),
           REPORT(TRAPLINE_BENIGN_RACE, address, (uint64_t)size), address, size, description)

/* -- Memory and names -- */

ANNOTATION(AnnotateNewMemory, (LOCATION, const volatile void* address, long size),
           REPORT(TRAPLINE_CLEAR_HISTORY, address, (uint64_t)size), address, size)
/* Handed over as it is: what was done to it until now is done. */
ANNOTATION(AnnotatePublishMemoryRange, (LOCATION, const volatile void* address, long size),
           REPORT(TRAPLINE_CLEAR_HISTORY, address, (uint64_t)size), address, size)
ANNOTATION(AnnotateUnpublishMemoryRange, (LOCATION, const volatile void* address, long size),
           REPORT(TRAPLINE_CLEAR_HISTORY, address, (uint64_t)size), address, size)
ANNOTATION(AnnotateThreadName, (LOCATION, const char* name), ReportThreadName(name, CALLER), name)

/* -- Taken note of and left alone: they direct the detectors they were written for. -- */

ANNOTATION(AnnotateExpectRace, (LOCATION, const volatile void* address, const char* description),
           (void)0, address, description)
ANNOTATION(AnnotateFlushExpectedRaces, (LOCATION), (void)0)
ANNOTATION(AnnotateFlushState, (LOCATION), (void)0)
ANNOTATION(AnnotateEnableRaceDetection, (LOCATION, int enable), (void)0, enable)
ANNOTATION(AnnotateTraceMemory, (LOCATION, const volatile void* address), (void)0, address)
ANNOTATION(AnnotateMutexIsUsedAsCondVar, (LOCATION, const volatile void* mutex), (void)0, mutex)
ANNOTATION(AnnotateMutexIsNotPHB, (LOCATION, const volatile void* mutex), (void)0, mutex)
ANNOTATION(AnnotateNoOp, (LOCATION, const volatile void* argument), (void)0, argument)

/* -- ThreadSanitizer's interface -- */

/* Flags of tsan_interface.h. */
enum {
  kTsanReadLock = 1 << 3,
  kTsanTryLockFailed = 1 << 5,
  kTsanRecursiveUnlock = 1 << 7,
};

WRAPPER void __tsan_acquire(void* object) {
  Ready();
  NEXT(__tsan_acquire, object);
  REPORT(TRAPLINE_HAPPENS_AFTER, object, 0);
}

WRAPPER void __tsan_release(void* object) {
  Ready();
  REPORT(TRAPLINE_HAPPENS_BEFORE, object, 0);
  NEXT(__tsan_release, object);
}

WRAPPER void __tsan_mutex_create(void* mutex, unsigned flags) {
  Ready();
  NEXT(__tsan_mutex_create, mutex, flags);
}

WRAPPER void __tsan_mutex_destroy(void* mutex, unsigned flags) {
  Ready();
  NEXT(__tsan_mutex_destroy, mutex, flags);
  REPORT(TRAPLINE_SYNC_DESTROYED, mutex, 0);
}

/* How the mutex works inside is nothing that orders or races. */
static void BeginMutexCode(uint64_t ip) {
  Event(TRAPLINE_IGNORE_BEGIN, NULL, kReadsAndWrites, ip);
  Event(TRAPLINE_IGNORE_SYNC_BEGIN, NULL, 0, ip);
}

static void EndMutexCode(uint64_t ip) {
  Event(TRAPLINE_IGNORE_SYNC_END, NULL, 0, ip);
  Event(TRAPLINE_IGNORE_END, NULL, kReadsAndWrites, ip);
}

WRAPPER void __tsan_mutex_pre_lock(void* mutex, unsigned flags) {
  Ready();
  NEXT(__tsan_mutex_pre_lock, mutex, flags);
  BeginMutexCode(CALLER);
}

WRAPPER void __tsan_mutex_post_lock(void* mutex, unsigned flags, int recursion) {
  Ready();
  EndMutexCode(CALLER);
  NEXT(__tsan_mutex_post_lock, mutex, flags, recursion);
  if (!(flags & kTsanTryLockFailed))
    REPORT(flags & kTsanReadLock ? TRAPLINE_ACQUIRE_SHARED : TRAPLINE_ACQUIRE, mutex,
           TRAPLINE_LOCK_ANNOTATED);
}

WRAPPER int __tsan_mutex_pre_unlock(void* mutex, unsigned flags) {
  Ready();
  REPORT(flags & kTsanReadLock ? TRAPLINE_RELEASE_SHARED : TRAPLINE_RELEASE, mutex,
         TRAPLINE_LOCK_ANNOTATED);
  int recursion = flags & kTsanRecursiveUnlock ? 1 : 0;
  if (real.__tsan_mutex_pre_unlock) recursion = real.__tsan_mutex_pre_unlock(mutex, flags);
  BeginMutexCode(CALLER);
  return recursion;
}

WRAPPER void __tsan_mutex_post_unlock(void* mutex, unsigned flags) {
  Ready();
  EndMutexCode(CALLER);
  NEXT(__tsan_mutex_post_unlock, mutex, flags);
}

WRAPPER void __tsan_mutex_pre_signal(void* mutex, unsigned flags) {
  Ready();
  NEXT(__tsan_mutex_pre_signal, mutex, flags);
  BeginMutexCode(CALLER);
}

WRAPPER void __tsan_mutex_post_signal(void* mutex, unsigned flags) {
  Ready();
  EndMutexCode(CALLER);
  NEXT(__tsan_mutex_post_signal, mutex, flags);
}

/* Code of another kind in between. */
WRAPPER void __tsan_mutex_pre_divert(void* mutex, unsigned flags) {
  Ready();
  EndMutexCode(CALLER);
  NEXT(__tsan_mutex_pre_divert, mutex, flags);
}

WRAPPER void __tsan_mutex_post_divert(void* mutex, unsigned flags) {
  Ready();
  NEXT(__tsan_mutex_post_divert, mutex, flags);
  BeginMutexCode(CALLER);
}
