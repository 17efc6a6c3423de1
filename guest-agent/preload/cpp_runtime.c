/* What C++ libraries do inside, where nobody sees their atomic instructions: the count of those who
 * share an exception, and LLVM's std::weak_ptr, std::barrier, std::shared_mutex and std::call_once.
 *
 * std::latch, semaphores, shared_ptr and the rest of both libraries are atomic instructions in the
 * program's own code, or locks. */
#include "guest-agent/preload/runtime.h"

/* Whoever gives up what is counted may be the last one, who destroys it after all that the others
 * have done with it: each decrement releases and acquires. */
static void GiveUp(const void* object, uint64_t ip) {
  if (object == NULL) return;
  Event(TRAPLINE_HAPPENS_BEFORE, object, 0, ip);
  Event(TRAPLINE_HAPPENS_AFTER, object, 0, ip);
}

/* -- Exceptions that threads share (std::exception_ptr, std::future) -- */

/* Somebody has asked for a pointer to one: until then each has its thread alone. */
static int exceptions_are_shared;

static void ShareExceptions(void) {
  if (!__atomic_load_n(&exceptions_are_shared, __ATOMIC_RELAXED))
    __atomic_store_n(&exceptions_are_shared, 1, __ATOMIC_RELAXED);
}

/* The exception that the thread has caught last, null: none of C++. Its header has the same members
 * with GNU's runtime as with LLVM's, but for two words that the latter has ahead of them; that of
 * one that was thrown again by a pointer names another object (its class ends in 1). */
static const void* CaughtException(const struct ExceptionGlobals* globals) {
  static const struct Layout {
    uint64_t class; /* "GNUCC++", "CLNGC++", and a last byte */
    size_t class_at, primary_at, size;
  } kLayouts[] = {{0x474e5543432b2b00, 80, 0, 112}, {0x434c4e47432b2b00, 96, 8, 128}};
  const char* caught = globals->caught;
  if (!caught) return NULL;
  for (size_t i = 0; i < sizeof kLayouts / sizeof *kLayouts; ++i) {
    const struct Layout* layout = &kLayouts[i];
    const uint64_t class = *(const uint64_t*)(caught + layout->class_at);
    if (class == layout->class) return caught + layout->size;
    if (class == layout->class + 1) return *(void* const*)(caught + layout->primary_at);
  }
  return NULL;
}

WRAPPER void __cxa_end_catch(void) {
  REQUIRE(__cxa_end_catch);
  if (runtime.agent && __atomic_load_n(&exceptions_are_shared, __ATOMIC_RELAXED)) {
    REQUIRE(__cxa_get_globals);
    GiveUp(CaughtException(real.__cxa_get_globals()), CALLER);
  }
  real.__cxa_end_catch();
}

/* std::current_exception, of both libraries. */
WRAPPER void* _ZSt17current_exceptionv(void* result) {
  REQUIRE(_ZSt17current_exceptionv);
  ShareExceptions();
  return real._ZSt17current_exceptionv(result);
}

/* A change of an exception's count: what it reports, then the real function. */
#define EXCEPTION_COUNT(name, report) \
  WRAPPER void name(void* argument) { \
    REQUIRE(name);                    \
    ShareExceptions();                \
    report;                           \
    real.name(argument);              \
  }

/* GNU's std::exception_ptr: its one member is the exception. */
EXCEPTION_COUNT(_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv, (void)0)
EXCEPTION_COUNT(_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv,
                GiveUp(*(void**)argument, CALLER))
/* LLVM's. */
EXCEPTION_COUNT(__cxa_increment_exception_refcount, (void)0)
EXCEPTION_COUNT(__cxa_decrement_exception_refcount, GiveUp(argument, CALLER))

/* -- LLVM's std::weak_ptr -- */

/* The counts of owners are changed by the program's own code, that of the block which has them is
 * not: its last user frees it. */
WRAPPER void _ZNSt3__119__shared_weak_count14__release_weakEv(void* counts) {
  REQUIRE(_ZNSt3__119__shared_weak_count14__release_weakEv);
  GiveUp(counts, CALLER);
  real._ZNSt3__119__shared_weak_count14__release_weakEv(counts);
}

/* -- LLVM's std::barrier -- */

/* Who comes last goes on to the next phase, after all others; that, which they wait for, is done by
 * the program's own code. */
WRAPPER bool _ZNSt3__131__arrive_barrier_algorithm_baseEPNS_24__barrier_algorithm_baseEh(
    void* barrier, unsigned char phase) {
  REQUIRE(_ZNSt3__131__arrive_barrier_algorithm_baseEPNS_24__barrier_algorithm_baseEh);
  Event(TRAPLINE_HAPPENS_BEFORE, barrier, 0, CALLER);
  const bool is_last =
      real._ZNSt3__131__arrive_barrier_algorithm_baseEPNS_24__barrier_algorithm_baseEh(barrier,
                                                                                       phase);
  if (is_last) Event(TRAPLINE_HAPPENS_AFTER, barrier, 0, CALLER);
  return is_last;
}

/* -- LLVM's std::shared_mutex -- */

/* It is made of a mutex and condition variables, which would order readers among themselves. */
__thread unsigned own_locks;

#define TAKE_SHARED_MUTEX(name, kind)                 \
  WRAPPER void name(void* mutex) {                    \
    REQUIRE(name);                                    \
    ++own_locks;                                      \
    real.name(mutex);                                 \
    --own_locks;                                      \
    Event(kind, mutex, TRAPLINE_LOCK_RWLOCK, CALLER); \
  }

#define TRY_SHARED_MUTEX(name, kind)                             \
  WRAPPER bool name(void* mutex) {                               \
    REQUIRE(name);                                               \
    ++own_locks;                                                 \
    const bool taken = real.name(mutex);                         \
    --own_locks;                                                 \
    if (taken) Event(kind, mutex, TRAPLINE_LOCK_RWLOCK, CALLER); \
    return taken;                                                \
  }

#define GIVE_SHARED_MUTEX_BACK(name, kind)            \
  WRAPPER void name(void* mutex) {                    \
    REQUIRE(name);                                    \
    Event(kind, mutex, TRAPLINE_LOCK_RWLOCK, CALLER); \
    ++own_locks;                                      \
    real.name(mutex);                                 \
    --own_locks;                                      \
  }

TAKE_SHARED_MUTEX(_ZNSt3__119__shared_mutex_base4lockEv, TRAPLINE_ACQUIRE)
TRY_SHARED_MUTEX(_ZNSt3__119__shared_mutex_base8try_lockEv, TRAPLINE_ACQUIRE)
GIVE_SHARED_MUTEX_BACK(_ZNSt3__119__shared_mutex_base6unlockEv, TRAPLINE_RELEASE)
TAKE_SHARED_MUTEX(_ZNSt3__119__shared_mutex_base11lock_sharedEv, TRAPLINE_ACQUIRE_SHARED)
TRY_SHARED_MUTEX(_ZNSt3__119__shared_mutex_base15try_lock_sharedEv, TRAPLINE_ACQUIRE_SHARED)
GIVE_SHARED_MUTEX_BACK(_ZNSt3__119__shared_mutex_base13unlock_sharedEv, TRAPLINE_RELEASE_SHARED)

/* -- LLVM's std::call_once -- */

struct CallOnce {
  volatile unsigned long* flag;
  void (*function)(void*);
  void* argument;
  uint64_t ip, stack;
};

/* The program's code looks at the flag itself and calls only while it is not set: so it is reported
 * as written atomically. The one lock that the library has for all flags counts: it is what orders
 * a function that throws, and the next one to be tried. */
static void RunOnce(void* argument) {
  const struct CallOnce* call = argument;
  call->function(call->argument);
  Event(TRAPLINE_HAPPENS_BEFORE, call->flag, 0, call->ip);
  if (runtime.agent)
    runtime.agent->access(TRAPLINE_ATOMIC_WRITE, (uint64_t)call->flag, sizeof *call->flag, call->ip,
                          call->stack);
}

WRAPPER void _ZNSt3__111__call_onceERVmPvPFvS2_E(volatile unsigned long* flag, void* argument,
                                                 void (*function)(void*)) {
  REQUIRE(_ZNSt3__111__call_onceERVmPvPFvS2_E);
  struct CallOnce call = {flag, function, argument, CALLER, CALLER_STACK};
  real._ZNSt3__111__call_onceERVmPvPFvS2_E(flag, &call, RunOnce);
  Event(TRAPLINE_HAPPENS_AFTER, flag, 0, CALLER);
}
