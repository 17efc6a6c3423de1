/* Trapline's interface for programs: tell the data race detector what it cannot see by itself.
 *
 * C and C++, this file alone: nothing to link, in static and dynamic programs alike. Each function
 * looks for the detector once; without it (the program runs as usual) it does nothing, and costs a
 * load and a branch. All of them may be called by any thread and in signal handlers.
 *
 * A program that manages its own locks, memory or queues in ways Trapline does not know (atomics
 * it does) uses them like this:
 *
 *   trapline_happens_before(&mailbox);   in the sender, before the message can be seen
 *   trapline_happens_after(&mailbox);    in the receiver, after it was seen
 *
 * The order is LARD's (Lightweight Annotations for Race Detection): what gives something away is
 * reported before it is done, what gains something afterwards. */
#ifndef TRAPLINE_TRAPLINE_H_
#define TRAPLINE_TRAPLINE_H_

/* C, too: NOLINTBEGIN(modernize-deprecated-headers,modernize-use-nullptr) */

#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What follows up to trapline_running is how the detector is reached, not for direct use. */

#define TRAPLINE_CLIENT_AUXV 0x54524150
#define TRAPLINE_CLIENT_VERSION 1

enum trapline_client_event {
  TRAPLINE_CLIENT_ACQUIRE = 1,
  TRAPLINE_CLIENT_RELEASE = 2,
  TRAPLINE_CLIENT_ACQUIRE_SHARED = 3,
  TRAPLINE_CLIENT_RELEASE_SHARED = 4,
  TRAPLINE_CLIENT_HAPPENS_BEFORE = 5,
  TRAPLINE_CLIENT_HAPPENS_AFTER = 6,
  TRAPLINE_CLIENT_BARRIER_ENTER = 7,
  TRAPLINE_CLIENT_BARRIER_LEAVE = 8,
  TRAPLINE_CLIENT_SYNC_DESTROYED = 10,
  TRAPLINE_CLIENT_ALLOCATE = 11,
  TRAPLINE_CLIENT_FREE = 12,
  TRAPLINE_CLIENT_CLEAR_HISTORY = 13,
  TRAPLINE_CLIENT_IGNORE_BEGIN = 14,
  TRAPLINE_CLIENT_IGNORE_END = 15,
  TRAPLINE_CLIENT_IGNORE_SYNC_BEGIN = 16,
  TRAPLINE_CLIENT_IGNORE_SYNC_END = 17,
  TRAPLINE_CLIENT_BENIGN_RACE = 18,
  TRAPLINE_CLIENT_UNTRACK = 19,
  TRAPLINE_CLIENT_TRACK = 20,
  TRAPLINE_CLIENT_THREAD_NAME = 21,
  TRAPLINE_CLIENT_LOCK_ANNOTATED = 4 /* kind of lock */
};

struct trapline_client_interface {
  uint32_t version;
  uint32_t size;
  void (*event)(uint64_t kind, uint64_t address, uint64_t size, uint64_t ip);
};

static inline const struct trapline_client_interface* trapline_client(void) {
  /* Each thread's own: plain or atomic, variables of all threads would look like a race in a binary
   * without debug info. */
  static __thread const struct trapline_client_interface* client;
  static __thread int looked;
  if (!looked) {
    const struct trapline_client_interface* found =
        (const struct trapline_client_interface*)getauxval(TRAPLINE_CLIENT_AUXV);
    if (found && found->version != TRAPLINE_CLIENT_VERSION) found = NULL;
    client = found;
    looked = 1;
  }
  return client;
}

static inline void trapline_client_report(enum trapline_client_event kind,
                                          const volatile void* address, uint64_t size) {
  const struct trapline_client_interface* client = trapline_client();
  uint64_t ip; /* the instruction to blame: here, in the program's function */
  if (!client) return;
  __asm__("lea 0(%%rip), %0" : "=r"(ip));
  client->event((uint64_t)kind, (uint64_t)address, size, ip);
}

/* Whether the program runs under Trapline. */
static inline int trapline_running(void) { return trapline_client() != NULL; }

/* -- Order -- */

/* Everything the calling thread has done so far happens before everything that follows a later
 * trapline_happens_after with the same key, whoever calls it. A key is any address; several calls
 * add up. */
static inline void trapline_happens_before(const volatile void* key) {
  trapline_client_report(TRAPLINE_CLIENT_HAPPENS_BEFORE, key, 0);
}

static inline void trapline_happens_after(const volatile void* key) {
  trapline_client_report(TRAPLINE_CLIENT_HAPPENS_AFTER, key, 0);
}

/* -- Locks: call after one has been taken, and before it is given back. -- */

static inline void trapline_lock_acquired(const volatile void* lock) {
  trapline_client_report(TRAPLINE_CLIENT_ACQUIRE, lock, TRAPLINE_CLIENT_LOCK_ANNOTATED);
}

static inline void trapline_lock_releasing(const volatile void* lock) {
  trapline_client_report(TRAPLINE_CLIENT_RELEASE, lock, TRAPLINE_CLIENT_LOCK_ANNOTATED);
}

/* The side of a lock that several threads may hold at once. */
static inline void trapline_shared_lock_acquired(const volatile void* lock) {
  trapline_client_report(TRAPLINE_CLIENT_ACQUIRE_SHARED, lock, TRAPLINE_CLIENT_LOCK_ANNOTATED);
}

static inline void trapline_shared_lock_releasing(const volatile void* lock) {
  trapline_client_report(TRAPLINE_CLIENT_RELEASE_SHARED, lock, TRAPLINE_CLIENT_LOCK_ANNOTATED);
}

/* -- Barriers: call before waiting, and after it. `threads` is how many the barrier waits for,
 * 0 if that is not known. -- */

static inline void trapline_barrier_enter(const volatile void* barrier, unsigned threads) {
  trapline_client_report(TRAPLINE_CLIENT_BARRIER_ENTER, barrier, threads);
}

static inline void trapline_barrier_leave(const volatile void* barrier, unsigned threads) {
  trapline_client_report(TRAPLINE_CLIENT_BARRIER_LEAVE, barrier, threads);
}

/* The lock, barrier or key is no more: what comes to lie there is another one. */
static inline void trapline_sync_destroyed(const volatile void* object) {
  trapline_client_report(TRAPLINE_CLIENT_SYNC_DESTROYED, object, 0);
}

/* -- Memory. Sizes in bytes; ranges need not be aligned. -- */

/* The program's own allocator gives out a block, or is about to take it back. */
static inline void trapline_allocated(const volatile void* block, size_t size) {
  trapline_client_report(TRAPLINE_CLIENT_ALLOCATE, block, size);
}

static inline void trapline_freeing(const volatile void* block, size_t size) {
  trapline_client_report(TRAPLINE_CLIENT_FREE, block, size);
}

/* The range is fresh: accesses until now race with none that follow. */
static inline void trapline_clear_history(const volatile void* address, size_t size) {
  trapline_client_report(TRAPLINE_CLIENT_CLEAR_HISTORY, address, size);
}

/* -- What does not count -- */

/* Races on the range are meant: they are not reported. */
static inline void trapline_benign_race(const volatile void* address, size_t size) {
  trapline_client_report(TRAPLINE_CLIENT_BENIGN_RACE, address, size);
}

/* Accesses to the range by any thread do not count from now on; they count again. */
static inline void trapline_untrack(const volatile void* address, size_t size) {
  trapline_client_report(TRAPLINE_CLIENT_UNTRACK, address, size);
}

static inline void trapline_track(const volatile void* address, size_t size) {
  trapline_client_report(TRAPLINE_CLIENT_TRACK, address, size);
}

/* Accesses by the calling thread do not count in between. Nests; TRAPLINE_READS and _WRITES nest
 * apart. */
enum trapline_accesses { TRAPLINE_READS = 1, TRAPLINE_WRITES = 2, TRAPLINE_READS_AND_WRITES = 3 };

static inline void trapline_ignore_begin(enum trapline_accesses accesses) {
  trapline_client_report(TRAPLINE_CLIENT_IGNORE_BEGIN, NULL, (uint64_t)accesses);
}

static inline void trapline_ignore_end(enum trapline_accesses accesses) {
  trapline_client_report(TRAPLINE_CLIENT_IGNORE_END, NULL, (uint64_t)accesses);
}

/* Synchronisation by the calling thread orders nothing in between. Nests. */
static inline void trapline_ignore_sync_begin(void) {
  trapline_client_report(TRAPLINE_CLIENT_IGNORE_SYNC_BEGIN, NULL, 0);
}

static inline void trapline_ignore_sync_end(void) {
  trapline_client_report(TRAPLINE_CLIENT_IGNORE_SYNC_END, NULL, 0);
}

/* -- Names -- */

/* The calling thread's name in reports. `name` must stay until the thread ends. */
static inline void trapline_thread_name(const char* name) {
  trapline_client_report(TRAPLINE_CLIENT_THREAD_NAME, name, 0);
}

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-deprecated-headers,modernize-use-nullptr) */

#endif
