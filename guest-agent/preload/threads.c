/* Threads: which number the monitor gave the thread that a pthread_t names, for the one who waits
 * for it. Creation and end of a thread are seen by the monitor itself. */
#include <sched.h>
#include <stdatomic.h>

#include "guest-agent/preload/runtime.h"

/* A thread that can still be waited for. Entries are taken and given back without locks, so that
 * the table is good in a child of fork whatever the other threads were doing. */
struct ThreadEntry {
  uint64_t number; /* set by the thread before its key is published */
  int detached;
  union {
    void* (*posix)(void*);
    thrd_start_t c11;
  } start;
  void* argument;
};

/* More threads than one process can have (vm.max_map_count). */
enum { kThreadEntries = 65536 };

/* Values of a key that are no thread: those are addresses of thread control blocks. */
enum { kKeyFree = 0, kKeyStarting = 1, kKeyClaimed = 2 };

/* Who an entry stands for: apart from the entries, because it is searched. */
static _Atomic(pthread_t) thread_keys[kThreadEntries];
static struct ThreadEntry thread_entries[kThreadEntries];
static _Atomic(size_t) thread_entries_used; /* all entries from here on have never been used */
static _Atomic(size_t) starting_threads;

static _Atomic(pthread_t)* KeyOf(const struct ThreadEntry* entry) {
  return &thread_keys[entry - thread_entries];
}

static void FreeEntry(const struct ThreadEntry* entry) { atomic_store(KeyOf(entry), kKeyFree); }

static struct ThreadEntry* TakeEntry(void) {
  for (size_t i = 0; i < kThreadEntries; ++i) {
    pthread_t free = kKeyFree;
    if (atomic_load_explicit(&thread_keys[i], memory_order_relaxed) != kKeyFree ||
        !atomic_compare_exchange_strong(&thread_keys[i], &free, kKeyStarting))
      continue;
    size_t used = atomic_load(&thread_entries_used);
    while (used <= i && !atomic_compare_exchange_weak(&thread_entries_used, &used, i + 1))
      ;
    return &thread_entries[i];
  }
  return NULL;
}

/* From now on a joiner finds `entry` by `thread`. Any other entry of that name is of a thread that
 * is no more: one that a child of fork does not have, or that ended after it was detached. */
static void Publish(struct ThreadEntry* entry, pthread_t thread) {
  size_t used = atomic_load(&thread_entries_used);
  for (size_t i = 0; i < used; ++i) {
    pthread_t stale = thread;
    if (atomic_load_explicit(&thread_keys[i], memory_order_relaxed) == thread)
      atomic_compare_exchange_strong(&thread_keys[i], &stale, kKeyFree);
  }
  atomic_store(KeyOf(entry), thread);
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
  if (entry) atomic_store(KeyOf(entry), thread);
}

/* As Claim, for who is going to wait for `thread` anyway: a thread that has not run its first
 * instructions yet has not told its name. */
static struct ThreadEntry* ClaimPatiently(pthread_t thread) {
  enum { kPatience = 10000 };
  struct ThreadEntry* entry = Claim(thread);
  for (int i = 0; !entry && i < kPatience && atomic_load(&starting_threads) != 0; ++i) {
    sched_yield();
    entry = Claim(thread);
  }
  return entry ? entry : Claim(thread);
}

void RegisterInitialThread(void) {
  struct ThreadEntry* entry = TakeEntry();
  if (!entry) return;
  entry->number = runtime.agent->thread();
  Publish(entry, pthread_self());
}

/* In the new thread, before any code of the program. */
static void EnterThread(struct ThreadEntry* entry) {
  entry->number = runtime.agent ? runtime.agent->thread() : 0;
  if (entry->detached)
    FreeEntry(entry);
  else
    Publish(entry, pthread_self());
  atomic_fetch_sub(&starting_threads, 1);
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

/* An entry for a thread about to be created; null: create it without. */
static struct ThreadEntry* PrepareThread(int detached, void* argument) {
  struct ThreadEntry* entry = ReadyAgent() ? TakeEntry() : NULL;
  if (!entry) return NULL;
  entry->detached = detached;
  entry->argument = argument;
  atomic_fetch_add(&starting_threads, 1);
  return entry;
}

static void ThreadNotCreated(const struct ThreadEntry* entry) {
  FreeEntry(entry);
  atomic_fetch_sub(&starting_threads, 1);
}

WRAPPER int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                           void* (*start)(void*), void* argument) {
  int detach_state = PTHREAD_CREATE_JOINABLE;
  if (attributes) pthread_attr_getdetachstate(attributes, &detach_state);
  struct ThreadEntry* entry = PrepareThread(detach_state == PTHREAD_CREATE_DETACHED, argument);
  if (!entry) return real.pthread_create(thread, attributes, start, argument);
  entry->start.posix = start;
  int result = real.pthread_create(thread, attributes, StartPosix, entry);
  if (result != 0) ThreadNotCreated(entry);
  return result;
}

WRAPPER int thrd_create(thrd_t* thread, thrd_start_t start, void* argument) {
  struct ThreadEntry* entry = PrepareThread(0, argument);
  if (!entry) return real.thrd_create(thread, start, argument);
  entry->start.c11 = start;
  int result = real.thrd_create(thread, StartC11, entry);
  if (result != thrd_success) ThreadNotCreated(entry);
  return result;
}

/* A wait for `thread` by someone at `ip`. */
struct Join {
  pthread_t thread;
  uint64_t ip;
  struct ThreadEntry* entry;
};

static void EndJoin(struct Join* join, int joined) {
  if (!joined) {
    Unclaim(join->entry, join->thread);
    return;
  }
  if (!join->entry) join->entry = Claim(join->thread);
  if (!join->entry) return;
  Event(TRAPLINE_JOIN, (const void*)join->entry->number, 0, join->ip);
  FreeEntry(join->entry);
}

/* pthread_join and its kin are cancellation points. */
static void JoinCancelled(void* argument) { EndJoin(argument, 0); }

/* The value of the expression `wait`, which waits for `thread` and gives 0 when it has ended. */
#define JOIN(thread_, claim, wait)                        \
  if (!ReadyAgent()) return (wait);                       \
  struct Join join = {(thread_), CALLER, claim(thread_)}; \
  int result;                                             \
  pthread_cleanup_push(JoinCancelled, &join);             \
  result = (wait);                                        \
  pthread_cleanup_pop(0);                                 \
  EndJoin(&join, result == 0);                            \
  return result

WRAPPER int pthread_join(pthread_t thread, void** value) {
  JOIN(thread, ClaimPatiently, real.pthread_join(thread, value));
}

WRAPPER int pthread_tryjoin_np(pthread_t thread, void** value) {
  JOIN(thread, Claim, real.pthread_tryjoin_np(thread, value));
}

WRAPPER int pthread_timedjoin_np(pthread_t thread, void** value, const struct timespec* deadline) {
  JOIN(thread, Claim, real.pthread_timedjoin_np(thread, value, deadline));
}

WRAPPER int pthread_clockjoin_np(pthread_t thread, void** value, clockid_t clock,
                                 const struct timespec* deadline) {
  JOIN(thread, Claim, real.pthread_clockjoin_np(thread, value, clock, deadline));
}

WRAPPER int thrd_join(thrd_t thread, int* value) {
  JOIN(thread, ClaimPatiently, real.thrd_join(thread, value));
}

/* Nobody will wait for `thread`. If it has not told its name yet, its entry goes when the name is
 * used again. */
#define DETACH(thread, detach)                                     \
  struct ThreadEntry* entry = ReadyAgent() ? Claim(thread) : NULL; \
  int result = (detach);                                           \
  if (entry && result == 0) FreeEntry(entry);                      \
  if (entry && result != 0) Unclaim(entry, thread);                \
  return result

WRAPPER int pthread_detach(pthread_t thread) { DETACH(thread, real.pthread_detach(thread)); }

WRAPPER int thrd_detach(thrd_t thread) { DETACH(thread, real.thrd_detach(thread)); }

static void CopyName(char* to, const char* from, size_t size) {
  size_t i = 0;
  for (; i + 1 < size && from[i]; ++i) to[i] = from[i];
  to[i] = 0;
}

WRAPPER int pthread_setname_np(pthread_t thread, const char* name) {
  /* The event is handled later: the name must still be there. */
  static __thread char reported_name[16];
  Ready();
  int result = real.pthread_setname_np(thread, name);
  if (runtime.agent && result == 0 && pthread_equal(thread, pthread_self())) {
    CopyName(reported_name, name, sizeof(reported_name));
    Event(TRAPLINE_THREAD_NAME, reported_name, 0, CALLER);
  }
  return result;
}
