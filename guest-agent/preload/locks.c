/* Mutexes, reader-writer locks, spinlocks, barriers, condition variables, semaphores and one-time
 * initialisation, of POSIX, of C11, and the guards of C++ static locals. */
#include <errno.h>
#include <stdio.h>

#include "guest-agent/preload/runtime.h"

/* A robust mutex whose owner died is taken all the same. */
static inline int Acquired(int result) { return result == 0 || result == EOWNERDEAD; }

/* An attempt to take a lock: reported once it succeeded. */
#define ACQUIRE(kind, lock, lock_kind, attempt)               \
  Ready();                                                    \
  int result = (attempt);                                     \
  if (Acquired(result)) Event(kind, lock, lock_kind, CALLER); \
  return result

#define RELEASE(kind, lock, lock_kind, release) \
  Ready();                                      \
  Event(kind, lock, lock_kind, CALLER);         \
  return release

/* Reported afterwards: who destroys a lock in use keeps it. Nobody can reuse the memory before
 * the caller knows. */
#define DESTROY(lock, destroy)                                      \
  Ready();                                                          \
  int result = (destroy);                                           \
  if (result == 0) Event(TRAPLINE_SYNC_DESTROYED, lock, 0, CALLER); \
  return result

/* Whoever uses the object at the same time races with its beginning. */
#define CREATE(object, create)                     \
  Ready();                                         \
  Event(TRAPLINE_SYNC_CREATED, object, 0, CALLER); \
  return create

/* -- Mutexes: of every type alike; a recursive one is reported each time. -- */

#define ACQUIRE_MUTEX(attempt) ACQUIRE(TRAPLINE_ACQUIRE, mutex, TRAPLINE_LOCK_MUTEX, attempt)
#define RELEASE_MUTEX(release) RELEASE(TRAPLINE_RELEASE, mutex, TRAPLINE_LOCK_MUTEX, release)

WRAPPER int pthread_mutex_lock(pthread_mutex_t* mutex) {
  ACQUIRE_MUTEX(real.pthread_mutex_lock(mutex));
}

WRAPPER int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  ACQUIRE_MUTEX(real.pthread_mutex_trylock(mutex));
}

WRAPPER int pthread_mutex_timedlock(pthread_mutex_t* mutex, const struct timespec* deadline) {
  ACQUIRE_MUTEX(real.pthread_mutex_timedlock(mutex, deadline));
}

WRAPPER int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                                    const struct timespec* deadline) {
  ACQUIRE_MUTEX(real.pthread_mutex_clocklock(mutex, clock, deadline));
}

WRAPPER int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  RELEASE_MUTEX(real.pthread_mutex_unlock(mutex));
}

WRAPPER int pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) {
  CREATE(mutex, real.pthread_mutex_init(mutex, attributes));
}

WRAPPER int pthread_mutex_destroy(pthread_mutex_t* mutex) {
  DESTROY(mutex, real.pthread_mutex_destroy(mutex));
}

/* Names that libraries built against older versions of libc call. */
WRAPPER int __pthread_mutex_lock(pthread_mutex_t* mutex);
WRAPPER int __pthread_mutex_trylock(pthread_mutex_t* mutex);
WRAPPER int __pthread_mutex_unlock(pthread_mutex_t* mutex);
WRAPPER int __pthread_mutex_destroy(pthread_mutex_t* mutex);

int __pthread_mutex_lock(pthread_mutex_t* mutex) { ACQUIRE_MUTEX(real.pthread_mutex_lock(mutex)); }

int __pthread_mutex_trylock(pthread_mutex_t* mutex) {
  ACQUIRE_MUTEX(real.pthread_mutex_trylock(mutex));
}

int __pthread_mutex_unlock(pthread_mutex_t* mutex) {
  RELEASE_MUTEX(real.pthread_mutex_unlock(mutex));
}

int __pthread_mutex_destroy(pthread_mutex_t* mutex) {
  DESTROY(mutex, real.pthread_mutex_destroy(mutex));
}

#define ACQUIRE_C11(attempt)                                     \
  const Agent* agent = ReadyC11Agent();                          \
  int result = (attempt);                                        \
  if (agent && result == thrd_success)                           \
    Event(TRAPLINE_ACQUIRE, mutex, TRAPLINE_LOCK_MUTEX, CALLER); \
  return result

WRAPPER int mtx_lock(mtx_t* mutex) { ACQUIRE_C11(real.mtx_lock(mutex)); }

WRAPPER int mtx_trylock(mtx_t* mutex) { ACQUIRE_C11(real.mtx_trylock(mutex)); }

WRAPPER int mtx_timedlock(mtx_t* restrict mutex, const struct timespec* restrict deadline) {
  ACQUIRE_C11(real.mtx_timedlock(mutex, deadline));
}

WRAPPER int mtx_unlock(mtx_t* mutex) {
  if (ReadyC11Agent()) Event(TRAPLINE_RELEASE, mutex, TRAPLINE_LOCK_MUTEX, CALLER);
  return real.mtx_unlock(mutex);
}

WRAPPER void mtx_destroy(mtx_t* mutex) {
  const Agent* agent = ReadyC11Agent();
  real.mtx_destroy(mutex);
  if (agent) Event(TRAPLINE_SYNC_DESTROYED, mutex, 0, CALLER);
}

/* A stream's lock, which programs use to keep their output together. */
WRAPPER void flockfile(FILE* stream) {
  Ready();
  real.flockfile(stream);
  Event(TRAPLINE_ACQUIRE, stream, TRAPLINE_LOCK_MUTEX, CALLER);
}

WRAPPER int ftrylockfile(FILE* stream) {
  ACQUIRE(TRAPLINE_ACQUIRE, stream, TRAPLINE_LOCK_MUTEX, real.ftrylockfile(stream));
}

WRAPPER void funlockfile(FILE* stream) {
  Ready();
  Event(TRAPLINE_RELEASE, stream, TRAPLINE_LOCK_MUTEX, CALLER);
  real.funlockfile(stream);
}

/* -- Reader-writer locks -- */

#define ACQUIRE_READ(attempt) ACQUIRE(TRAPLINE_ACQUIRE_SHARED, lock, TRAPLINE_LOCK_RWLOCK, attempt)
#define ACQUIRE_WRITE(attempt) ACQUIRE(TRAPLINE_ACQUIRE, lock, TRAPLINE_LOCK_RWLOCK, attempt)

WRAPPER int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  ACQUIRE_READ(real.pthread_rwlock_rdlock(lock));
}

WRAPPER int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) {
  ACQUIRE_READ(real.pthread_rwlock_tryrdlock(lock));
}

WRAPPER int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const struct timespec* deadline) {
  ACQUIRE_READ(real.pthread_rwlock_timedrdlock(lock, deadline));
}

WRAPPER int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock,
                                       const struct timespec* deadline) {
  ACQUIRE_READ(real.pthread_rwlock_clockrdlock(lock, clock, deadline));
}

WRAPPER int pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  ACQUIRE_WRITE(real.pthread_rwlock_wrlock(lock));
}

WRAPPER int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) {
  ACQUIRE_WRITE(real.pthread_rwlock_trywrlock(lock));
}

WRAPPER int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const struct timespec* deadline) {
  ACQUIRE_WRITE(real.pthread_rwlock_timedwrlock(lock, deadline));
}

WRAPPER int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock,
                                       const struct timespec* deadline) {
  ACQUIRE_WRITE(real.pthread_rwlock_clockwrlock(lock, clock, deadline));
}

/* Which side the caller holds is what libc's own unlock goes by: a lock has a writer exactly while
 * it is held for writing. */
static void ReportRwlockRelease(const pthread_rwlock_t* lock, uint64_t ip) {
  int written = *(const volatile int*)&lock->__data.__cur_writer != 0;
  Event(written ? TRAPLINE_RELEASE : TRAPLINE_RELEASE_SHARED, lock, TRAPLINE_LOCK_RWLOCK, ip);
}

WRAPPER int pthread_rwlock_unlock(pthread_rwlock_t* lock) {
  if (ReadyAgent()) ReportRwlockRelease(lock, CALLER);
  return real.pthread_rwlock_unlock(lock);
}

WRAPPER int pthread_rwlock_init(pthread_rwlock_t* restrict lock,
                                const pthread_rwlockattr_t* restrict attributes) {
  CREATE(lock, real.pthread_rwlock_init(lock, attributes));
}

WRAPPER int pthread_rwlock_destroy(pthread_rwlock_t* lock) {
  DESTROY(lock, real.pthread_rwlock_destroy(lock));
}

/* -- Spinlocks -- */

WRAPPER int pthread_spin_lock(pthread_spinlock_t* lock) {
  ACQUIRE(TRAPLINE_ACQUIRE, lock, TRAPLINE_LOCK_SPINLOCK, real.pthread_spin_lock(lock));
}

WRAPPER int pthread_spin_trylock(pthread_spinlock_t* lock) {
  ACQUIRE(TRAPLINE_ACQUIRE, lock, TRAPLINE_LOCK_SPINLOCK, real.pthread_spin_trylock(lock));
}

WRAPPER int pthread_spin_unlock(pthread_spinlock_t* lock) {
  RELEASE(TRAPLINE_RELEASE, lock, TRAPLINE_LOCK_SPINLOCK, real.pthread_spin_unlock(lock));
}

WRAPPER int pthread_spin_init(pthread_spinlock_t* lock, int shared) {
  CREATE(lock, real.pthread_spin_init(lock, shared));
}

WRAPPER int pthread_spin_destroy(pthread_spinlock_t* lock) {
  DESTROY(lock, real.pthread_spin_destroy(lock));
}

/* -- Barriers -- */

/* How many threads a barrier waits for: the third word of glibc's struct pthread_barrier (2.25 and
 * later), which its header keeps to itself. */
static uint64_t Participants(const pthread_barrier_t* barrier) {
  return ((const volatile unsigned*)barrier)[2];
}

WRAPPER int pthread_barrier_wait(pthread_barrier_t* barrier) {
  if (!ReadyAgent()) return real.pthread_barrier_wait(barrier);
  /* Read before: whoever leaves first may destroy it. */
  uint64_t participants = Participants(barrier);
  Event(TRAPLINE_BARRIER_ENTER, barrier, participants, CALLER);
  int result = real.pthread_barrier_wait(barrier);
  Event(TRAPLINE_BARRIER_LEAVE, barrier, participants, CALLER);
  return result;
}

WRAPPER int pthread_barrier_init(pthread_barrier_t* restrict barrier,
                                 const pthread_barrierattr_t* restrict attributes,
                                 unsigned participants) {
  CREATE(barrier, real.pthread_barrier_init(barrier, attributes, participants));
}

WRAPPER int pthread_barrier_destroy(pthread_barrier_t* barrier) {
  DESTROY(barrier, real.pthread_barrier_destroy(barrier));
}

/* -- Condition variables: no order of their own. A program that waits for a condition in a loop
 * is ordered by the mutex; one that relies on a signal alone is wrong, for wake-ups may be
 * spurious. -- */

struct Reacquired {
  const void* mutex;
  uint64_t ip;
};

/* Also when the wait is cancelled: the clean-up handlers run with the mutex held. */
static void ReportReacquired(void* argument) {
  const struct Reacquired* reacquired = argument;
  Event(TRAPLINE_ACQUIRE, reacquired->mutex, TRAPLINE_LOCK_MUTEX, reacquired->ip);
}

#define WAIT(agent, mutex_, wait)                                                \
  if (!(agent)) return (wait);                                                   \
  struct Reacquired reacquired = {(mutex_), CALLER};                             \
  int result;                                                                    \
  Event(TRAPLINE_RELEASE, reacquired.mutex, TRAPLINE_LOCK_MUTEX, reacquired.ip); \
  pthread_cleanup_push(ReportReacquired, &reacquired);                           \
  result = (wait);                                                               \
  pthread_cleanup_pop(1);                                                        \
  return result

WRAPPER int pthread_cond_init(pthread_cond_t* restrict condition,
                              const pthread_condattr_t* restrict attributes) {
  CREATE(condition, real.pthread_cond_init(condition, attributes));
}

WRAPPER int pthread_cond_destroy(pthread_cond_t* condition) {
  DESTROY(condition, real.pthread_cond_destroy(condition));
}

WRAPPER int pthread_cond_signal(pthread_cond_t* condition) {
  RELEASE(TRAPLINE_SYNC_USED, condition, 0, real.pthread_cond_signal(condition));
}

WRAPPER int pthread_cond_broadcast(pthread_cond_t* condition) {
  RELEASE(TRAPLINE_SYNC_USED, condition, 0, real.pthread_cond_broadcast(condition));
}

WRAPPER int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  WAIT(ReadyAgent(), mutex, real.pthread_cond_wait(condition, mutex));
}

WRAPPER int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                   const struct timespec* deadline) {
  WAIT(ReadyAgent(), mutex, real.pthread_cond_timedwait(condition, mutex, deadline));
}

WRAPPER int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                   clockid_t clock, const struct timespec* deadline) {
  WAIT(ReadyAgent(), mutex, real.pthread_cond_clockwait(condition, mutex, clock, deadline));
}

WRAPPER int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  WAIT(ReadyC11Agent(), mutex, real.cnd_wait(condition, mutex));
}

WRAPPER int cnd_timedwait(cnd_t* restrict condition, mtx_t* restrict mutex,
                          const struct timespec* restrict deadline) {
  WAIT(ReadyC11Agent(), mutex, real.cnd_timedwait(condition, mutex, deadline));
}

/* -- Semaphores: a post happens before every wait that comes through after it. -- */

#define SEMAPHORE_WAIT(wait)                                            \
  Ready();                                                              \
  int result = (wait);                                                  \
  if (result == 0) Event(TRAPLINE_HAPPENS_AFTER, semaphore, 0, CALLER); \
  return result

WRAPPER int sem_post(sem_t* semaphore) {
  RELEASE(TRAPLINE_HAPPENS_BEFORE, semaphore, 0, real.sem_post(semaphore));
}

WRAPPER int sem_wait(sem_t* semaphore) { SEMAPHORE_WAIT(real.sem_wait(semaphore)); }

WRAPPER int sem_trywait(sem_t* semaphore) { SEMAPHORE_WAIT(real.sem_trywait(semaphore)); }

WRAPPER int sem_timedwait(sem_t* restrict semaphore, const struct timespec* restrict deadline) {
  SEMAPHORE_WAIT(real.sem_timedwait(semaphore, deadline));
}

WRAPPER int sem_clockwait(sem_t* restrict semaphore, clockid_t clock,
                          const struct timespec* restrict deadline) {
  SEMAPHORE_WAIT(real.sem_clockwait(semaphore, clock, deadline));
}

WRAPPER int sem_destroy(sem_t* semaphore) { DESTROY(semaphore, real.sem_destroy(semaphore)); }

/* -- One-time initialisation: the initialiser happens before the return of every call. -- */

/* A call that may run the initialiser, which has no parameter to find this by. */
struct OnceCall {
  const void* control;
  void (*initialiser)(void);
  uint64_t ip;
  struct OnceCall* outer; /* the initialiser of another one makes this call */
};
static __thread struct OnceCall* once_call;

/* The initialisers that the thread runs, outermost first. One that has been left by an exception
 * goes when that is noticed: the stack no longer reaches down to its frame. */
enum { kNestedInitialisers = 8 };
static __thread struct {
  const void* control;
  const char* frame;
} initialising[kNestedInitialisers];
static __thread int initialising_count;

static void ForgetLeftInitialisers(const char* frame) {
  while (initialising_count > 0 && initialising[initialising_count - 1].frame <= frame)
    --initialising_count;
}

static void RunInitialiser(void) {
  const struct OnceCall* call = once_call;
  once_call = call->outer; /* now: the initialiser may leave by an exception */
  /* Another thread's attempt may have left by an exception. That it has, the monitor sees when libc
   * wakes those that wait for the control, provided it has heard of it. */
  Event(TRAPLINE_HAPPENS_BEFORE, call->control, 0, call->ip);
  Event(TRAPLINE_HAPPENS_AFTER, call->control, 0, call->ip);
  const char* frame = __builtin_frame_address(0);
  ForgetLeftInitialisers(frame);
  const int number = initialising_count;
  if (number < kNestedInitialisers) {
    initialising[number].control = call->control;
    initialising[number].frame = frame;
    initialising_count = number + 1;
  }
  call->initialiser();
  initialising_count = number;
  Event(TRAPLINE_HAPPENS_BEFORE, call->control, 0, call->ip);
}

/* Who throws may leave an initialiser, which another thread begins anew before any is woken. */
WRAPPER int _Unwind_RaiseException(void* exception) {
  REQUIRE(_Unwind_RaiseException);
  ForgetLeftInitialisers(__builtin_frame_address(0));
  for (int i = 0; i < initialising_count; ++i)
    Event(TRAPLINE_HAPPENS_BEFORE, initialising[i].control, 0, CALLER);
  return real._Unwind_RaiseException(exception);
}

#define ONCE(control_, initialiser_, once)                                \
  struct OnceCall call = {(control_), (initialiser_), CALLER, once_call}; \
  once_call = &call;                                                      \
  once;                                                                   \
  once_call = call.outer;                                                 \
  Event(TRAPLINE_HAPPENS_AFTER, call.control, 0, call.ip)

WRAPPER int pthread_once(pthread_once_t* control, void (*initialiser)(void)) {
  if (!ReadyAgent()) return real.pthread_once(control, initialiser);
  int result;
  ONCE(control, initialiser, result = real.pthread_once(control, RunInitialiser));
  return result;
}

WRAPPER void call_once(once_flag* flag, void (*initialiser)(void)) {
  if (!ReadyC11Agent()) {
    real.call_once(flag, initialiser);
    return;
  }
  ONCE(flag, initialiser, real.call_once(flag, RunInitialiser));
}

/* The compiler's code looks at the guard's first byte itself and calls only while it is 0. So the
 * byte is reported as written atomically: plain reads of it are atomic too, and later ones acquire.
 */
WRAPPER int __cxa_guard_acquire(uint64_t* guard) {
  REQUIRE(__cxa_guard_acquire);
  int initialise = real.__cxa_guard_acquire(guard);
  Event(TRAPLINE_HAPPENS_AFTER, guard, 0, CALLER); /* also after an attempt that failed */
  return initialise;
}

WRAPPER void __cxa_guard_abort(uint64_t* guard) {
  REQUIRE(__cxa_guard_abort);
  Event(TRAPLINE_HAPPENS_BEFORE, guard, 0, CALLER);
  real.__cxa_guard_abort(guard);
}

WRAPPER void __cxa_guard_release(uint64_t* guard) {
  REQUIRE(__cxa_guard_release);
  const Agent* agent = runtime.agent;
  if (agent) {
    agent->event(TRAPLINE_HAPPENS_BEFORE, (uint64_t)guard, 0, CALLER);
    agent->access(TRAPLINE_ATOMIC_WRITE, (uint64_t)guard, 1, CALLER, CALLER_STACK);
  }
  real.__cxa_guard_release(guard);
}
