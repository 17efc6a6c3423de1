/* Threads: which number the monitor gave the thread that a pthread_t names, for the one who waits
 * for it, and the end of the last one. Creation and end of a thread are seen by the monitor itself.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest-agent/preload/runtime.h"

/* A thread that starts or can still be waited for. Entries are taken and given back without locks,
 * so that the table is good in a child of fork whatever the other threads were doing. */
struct ThreadEntry {
  uint64_t number; /* set by the thread before it gives up its share */
  union {
    void* (*posix)(void*);
    thrd_start_t c11;
  } start;
  void* argument;
  _Atomic(int) naming; /* enum Naming */
  /* Who still needs the entry: the new thread, its creator, and who finds it by its name. */
  _Atomic(int) shares;
};

/* The name must be known before anyone can use it, so whoever comes first enters it: the creator,
 * before it returns from pthread_create, or the thread, before it runs code of the program. */
enum Naming { kUnnamed, kNaming, kNamingAwaited, kNamed };

/* More threads than one process can have (vm.max_map_count). */
enum { kThreadEntries = 65536 };

/* Values of a key that are no thread: those are addresses of thread control blocks. */
enum { kKeyFree = 0, kKeyStarting = 1, kKeyClaimed = 2 };

/* Who an entry stands for: apart from the entries, because it is searched. */
static _Atomic(pthread_t) thread_keys[kThreadEntries];
static struct ThreadEntry thread_entries[kThreadEntries];
static _Atomic(size_t) thread_entries_used; /* all entries from here on have never been used */

static _Atomic(pthread_t)* KeyOf(const struct ThreadEntry* entry) {
  return &thread_keys[entry - thread_entries];
}

static struct ThreadEntry* TakeEntry(int shares) {
  for (size_t i = 0; i < kThreadEntries; ++i) {
    pthread_t free = kKeyFree;
    if (atomic_load_explicit(&thread_keys[i], memory_order_relaxed) != kKeyFree ||
        !atomic_compare_exchange_strong(&thread_keys[i], &free, kKeyStarting))
      continue;
    size_t used = atomic_load(&thread_entries_used);
    while (used <= i && !atomic_compare_exchange_weak(&thread_entries_used, &used, i + 1))
      ;
    struct ThreadEntry* entry = &thread_entries[i];
    entry->number = 0;
    atomic_store(&entry->naming, kUnnamed);
    atomic_store(&entry->shares, shares);
    return entry;
  }
  return NULL;
}

static void FreeEntry(const struct ThreadEntry* entry) { atomic_store(KeyOf(entry), kKeyFree); }

static void GiveUpShare(struct ThreadEntry* entry) {
  if (atomic_fetch_sub(&entry->shares, 1) == 1) FreeEntry(entry);
}

/* Takes the entry of `thread` out of sight before the real join: afterwards its name may already
 * be another thread's. */
static struct ThreadEntry* Claim(pthread_t thread) {
  size_t used = atomic_load(&thread_entries_used);
  for (size_t i = 0; i < used; ++i) {
    pthread_t key = thread;
    if (atomic_load_explicit(&thread_keys[i], memory_order_relaxed) == thread &&
        atomic_compare_exchange_strong(&thread_keys[i], &key, kKeyClaimed))
      return &thread_entries[i];
  }
  return NULL;
}

static void Unclaim(const struct ThreadEntry* entry, pthread_t thread) {
  atomic_store(KeyOf(entry), thread);
}

/* From now on a joiner finds `entry` by `thread`. Another entry of that name is of a thread that a
 * child of fork does not have. */
static void Publish(struct ThreadEntry* entry, pthread_t thread) {
  for (struct ThreadEntry* stale = Claim(thread); stale; stale = Claim(thread)) FreeEntry(stale);
  atomic_store(KeyOf(entry), thread);
}

static void Futex(_Atomic(int)* word, int operation, int value) {
  int saved_errno = errno;
  syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL);
  errno = saved_errno;
}

/* By creator and new thread alike; afterwards the entry can be found. The creator may read
 * `thread`, the program's variable: the new thread does not run code of the program, which might do
 * away with it, until then. */
static void Name(struct ThreadEntry* entry, const pthread_t* thread) {
  int naming = kUnnamed;
  if (atomic_compare_exchange_strong(&entry->naming, &naming, kNaming)) {
    Publish(entry, *thread);
    if (atomic_exchange(&entry->naming, kNamed) == kNamingAwaited)
      Futex(&entry->naming, FUTEX_WAKE, 1);
  } else {
    naming = kNaming;
    atomic_compare_exchange_strong(&entry->naming, &naming, kNamingAwaited);
    while (atomic_load(&entry->naming) != kNamed) Futex(&entry->naming, FUTEX_WAIT, kNamingAwaited);
  }
  GiveUpShare(entry);
}

void RegisterInitialThread(void) {
  struct ThreadEntry* entry = TakeEntry(1);
  if (!entry) return;
  entry->number = runtime.agent->thread();
  Publish(entry, pthread_self());
}

enum { kSharesOfJoinable = 3 };

/* In the new thread, before any code of the program. */
static void EnterThread(struct ThreadEntry* entry) {
  entry->number = runtime.agent ? runtime.agent->thread() : 0;
  pthread_t self = pthread_self();
  Name(entry, &self);
}

static void* StartPosix(void* argument) {
  struct ThreadEntry* entry = argument;
  void* (*start)(void*) = entry->start.posix;
  void* start_argument = entry->argument;
  EnterThread(entry);
  return start(start_argument);
}

static int StartC11(void* argument) {
  struct ThreadEntry* entry = argument;
  thrd_start_t start = entry->start.c11;
  void* start_argument = entry->argument;
  EnterThread(entry);
  return start(start_argument);
}

WRAPPER int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                           void* (*start)(void*), void* argument) {
  int detach_state = PTHREAD_CREATE_JOINABLE;
  if (ReadyAgent() && attributes) pthread_attr_getdetachstate(attributes, &detach_state);
  /* Nobody asks for a detached thread. */
  struct ThreadEntry* entry = runtime.agent && detach_state == PTHREAD_CREATE_JOINABLE
                                  ? TakeEntry(kSharesOfJoinable)
                                  : NULL;
  if (!entry) return real.pthread_create(thread, attributes, start, argument);
  entry->start.posix = start;
  entry->argument = argument;
  int result = real.pthread_create(thread, attributes, StartPosix, entry);
  if (result == 0)
    Name(entry, thread);
  else
    FreeEntry(entry);
  return result;
}

WRAPPER int thrd_create(thrd_t* thread, thrd_start_t start, void* argument) {
  struct ThreadEntry* entry = ReadyC11Agent() ? TakeEntry(kSharesOfJoinable) : NULL;
  if (!entry) return real.thrd_create(thread, start, argument);
  entry->start.c11 = start;
  entry->argument = argument;
  int result = real.thrd_create(thread, StartC11, entry);
  if (result == thrd_success)
    Name(entry, thread);
  else
    FreeEntry(entry);
  return result;
}

/* A wait for `thread` by someone at `ip`. */
struct Join {
  pthread_t thread;
  uint64_t ip;
  struct ThreadEntry* entry;
};

/* Whether the wait may give up. */
enum Patience { kLimited, kUnlimited };

static void BeginJoin(const struct Join* join, enum Patience patience) {
  if (join->entry && patience == kUnlimited)
    Event(TRAPLINE_JOIN_BEGIN, (const void*)join->thread, 0, join->ip);
}

static void EndJoin(struct Join* join, int joined) {
  if (!join->entry) return;
  if (joined) {
    Event(TRAPLINE_JOIN, (const void*)join->entry->number, 0, join->ip);
    GiveUpShare(join->entry);
  } else {
    Unclaim(join->entry, join->thread);
  }
}

/* pthread_join and its kin are cancellation points. */
static void JoinCancelled(void* argument) { EndJoin(argument, 0); }

/* The value of the expression `wait`, which waits for `thread` and gives 0 when it has ended. */
#define JOIN(agent, thread_, patience, wait)              \
  if (!(agent)) return (wait);                            \
  struct Join join = {(thread_), CALLER, Claim(thread_)}; \
  BeginJoin(&join, (patience));                           \
  int result;                                             \
  pthread_cleanup_push(JoinCancelled, &join);             \
  result = (wait);                                        \
  pthread_cleanup_pop(0);                                 \
  EndJoin(&join, result == 0);                            \
  return result

WRAPPER int pthread_join(pthread_t thread, void** value) {
  JOIN(ReadyAgent(), thread, kUnlimited, real.pthread_join(thread, value));
}

WRAPPER int pthread_tryjoin_np(pthread_t thread, void** value) {
  JOIN(ReadyAgent(), thread, kLimited, real.pthread_tryjoin_np(thread, value));
}

WRAPPER int pthread_timedjoin_np(pthread_t thread, void** value, const struct timespec* deadline) {
  JOIN(ReadyAgent(), thread, kLimited, real.pthread_timedjoin_np(thread, value, deadline));
}

WRAPPER int pthread_clockjoin_np(pthread_t thread, void** value, clockid_t clock,
                                 const struct timespec* deadline) {
  JOIN(ReadyAgent(), thread, kLimited, real.pthread_clockjoin_np(thread, value, clock, deadline));
}

WRAPPER int thrd_join(thrd_t thread, int* value) {
  JOIN(ReadyC11Agent(), thread, kUnlimited, real.thrd_join(thread, value));
}

/* Nobody will wait for `thread`. */
#define DETACH(agent, thread, detach)                         \
  struct ThreadEntry* entry = (agent) ? Claim(thread) : NULL; \
  int result = (detach);                                      \
  if (entry && result == 0) GiveUpShare(entry);               \
  if (entry && result != 0) Unclaim(entry, thread);           \
  return result

WRAPPER int pthread_detach(pthread_t thread) {
  DETACH(ReadyAgent(), thread, real.pthread_detach(thread));
}

WRAPPER int thrd_detach(thrd_t thread) {
  DETACH(ReadyC11Agent(), thread, real.thrd_detach(thread));
}

/* -- The end of the last thread -- */

/* A process whose initial thread left by pthread_exit ends as by exit(0) once its last thread has
 * ended (pthread_exit in POSIX): handlers of exit and destructors of static objects then come after
 * all that any thread has done. Which one is the last the C library finds by a count of its own,
 * and calls no function that it exports, so a handler tells: the first of all that run. */
static _Atomic(int) initial_thread_left;
static _Atomic(int) exit_was_called; /* since then, by the program, whoever else still runs */

static void AfterAllThreads(void* unused) {
  (void)unused;
  if (!atomic_load(&exit_was_called)) Request(TRAPLINE_AFTER_ALL, 0, 0, 0);
}

static void HandleExitFirst(void) { real.__cxa_atexit(AfterAllThreads, NULL, NULL); }

static void LeaveThread(void) {
  if (runtime.agent && syscall(SYS_gettid) == getpid() && !atomic_exchange(&initial_thread_left, 1))
    HandleExitFirst();
}

WRAPPER void pthread_exit(void* value) {
  Ready();
  LeaveThread();
  real.pthread_exit(value);
  __builtin_unreachable();
}

WRAPPER void thrd_exit(int value) {
  Ready();
  LeaveThread();
  real.thrd_exit(value);
  __builtin_unreachable();
}

WRAPPER void exit(int status) {
  Ready();
  if (atomic_load(&initial_thread_left)) atomic_store(&exit_was_called, 1);
  real.exit(status);
  __builtin_unreachable();
}

/* What atexit calls, too. */
WRAPPER int __cxa_atexit(void (*handler)(void*), void* argument, void* library) {
  if (!Ready()) return -1;
  int result = real.__cxa_atexit(handler, argument, library);
  if (atomic_load(&initial_thread_left)) HandleExitFirst();
  return result;
}

void ReportThreadName(const char* name, uint64_t ip) {
  /* The event is handled later: the name must still be there. */
  static __thread char reported_name[64];
  size_t i = 0;
  for (; i + 1 < sizeof(reported_name) && name[i]; ++i) reported_name[i] = name[i];
  reported_name[i] = 0;
  Event(TRAPLINE_THREAD_NAME, reported_name, 0, ip);
}

WRAPPER int pthread_setname_np(pthread_t thread, const char* name) {
  Ready();
  int result = real.pthread_setname_np(thread, name);
  if (runtime.agent && result == 0 && pthread_equal(thread, pthread_self()))
    ReportThreadName(name, CALLER);
  return result;
}
