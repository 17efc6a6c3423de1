/* Trapline's interface for programs and language runtimes: tell the data race detector what it
 * cannot see by itself.
 *
 * C and C++, this file alone: nothing to link, in static and dynamic programs alike. The detector
 * is looked for before the program's own constructors run; without it (the program runs as usual)
 * it does nothing, and costs a load and a branch. All of them may be called by any thread and in
 * signal handlers; none fails, none keeps a pointer unless it says so.
 *
 * A program that manages its own locks, memory or queues in ways Trapline does not know (atomics
 * it does) uses them like this:
 *
 *   trapline_happens_before(&mailbox);   in the sender, before the message can be seen
 *   trapline_happens_after(&mailbox);    in the receiver, after it was seen
 *
 * What gives something away is reported before it is done, what gains something afterwards.
 *
 * The five extensions of LARD (Wood, Ceze and Grossman: Low-Level Detection of Language-Level Data
 * Races with LARD, ASPLOS 2014, section 3, Table 1) are here under these names:
 *
 *   tracked and untracked accesses          trapline_untrack, trapline_ignore_begin
 *   tracked and untracked synchronisation   trapline_ignore_sync_begin
 *   ClearHistory                            trapline_clear_history
 *   CopyHistory                             trapline_copy_history
 *   Thread                                  trapline_fiber_switch
 *   ReadVC, WriteVC                         trapline_happens_after, trapline_happens_before */
#ifndef TRAPLINE_CLIENT_H_
#define TRAPLINE_CLIENT_H_

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
  TRAPLINE_CLIENT_COPY_HISTORY = 40,
  TRAPLINE_CLIENT_COPY_HISTORIES = 41,
  TRAPLINE_CLIENT_AFTER_ALL = 42,
  TRAPLINE_CLIENT_FIBER_CREATE = 43,
  TRAPLINE_CLIENT_FIBER_SWITCH = 44,
  TRAPLINE_CLIENT_FIBER_DESTROY = 45,
  TRAPLINE_CLIENT_FIBER_NAME = 46,
  TRAPLINE_CLIENT_LOCK_ANNOTATED = 4 /* kind of lock */
};

struct trapline_client_interface {
  uint32_t version;
  uint32_t size;
  void (*event)(uint64_t kind, uint64_t address, uint64_t size, uint64_t ip);
  void (*request)(uint64_t kind, uint64_t address, uint64_t size, uint64_t ip,
                  uint64_t stack_pointer);
};

static const struct trapline_client_interface* trapline_client_found;

/* Before the program's own constructors. A thread's own variable would be as good without fibers,
 * which share their carrier's; and looking each time costs a call. */
__attribute__((constructor(101))) static void trapline_client_find(void) {
  const struct trapline_client_interface* found =
      (const struct trapline_client_interface*)getauxval(TRAPLINE_CLIENT_AUXV);
  if (!found || found->version != TRAPLINE_CLIENT_VERSION) return;
  trapline_client_found = found;
  /* Nobody is to be told of its uses. */
  found->event(TRAPLINE_CLIENT_UNTRACK, (uint64_t)&trapline_client_found,
               sizeof(trapline_client_found), 0);
}

static inline const struct trapline_client_interface* trapline_client(void) {
  return trapline_client_found;
}

__attribute__((always_inline)) static inline void trapline_client_report(
    enum trapline_client_event kind, const volatile void* address, uint64_t size) {
  const struct trapline_client_interface* client = trapline_client();
  uint64_t ip; /* the instruction to blame: here, in what the program calls */
  if (!client) return;
  __asm__("lea 0(%%rip), %0" : "=r"(ip));
  client->event((uint64_t)kind, (uint64_t)address, size, ip);
}

/* Something that takes effect at once, for all threads together. */
static inline void trapline_client_request(enum trapline_client_event kind,
                                           const volatile void* address, uint64_t size,
                                           const volatile void* other) {
  const struct trapline_client_interface* client = trapline_client();
  if (client) client->request((uint64_t)kind, (uint64_t)address, size, (uint64_t)other, 0);
}

/* In the function that changes stacks: what it has on the stack is part of the message. */
__attribute__((always_inline)) static inline void trapline_client_switch(const volatile void* fiber,
                                                                         uint64_t orders) {
  uint64_t stack_pointer;
  uint64_t frame; /* words */
  if (!trapline_client()) return;
  __asm__("mov %%rsp, %0" : "=r"(stack_pointer));
  frame = ((uint64_t)__builtin_frame_address(0) + 16 - stack_pointer) / 8;
  if (frame > 0x7fff) frame = 0x7fff;
  trapline_client_report(TRAPLINE_CLIENT_FIBER_SWITCH, fiber,
                         stack_pointer << 16 | frame << 1 | orders);
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

/* Everything that any thread has done so far happens before what the calling thread does next: as
 * for a finalizer, or the end of the world. */
static inline void trapline_happens_after_all(void) {
  trapline_client_request(TRAPLINE_CLIENT_AFTER_ALL, NULL, 0, NULL);
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

/* The lock, barrier or key is no more, which counts as a write to its first byte: who uses it
 * without order races with that. What it has ordered until then it still does
 * (docs/synchronisation.md). */
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

/* The range is fresh: accesses until now race with none that follow. To be called before the memory
 * can be given out again (section 3.3). */
static inline void trapline_clear_history(const volatile void* address, size_t size) {
  trapline_client_report(TRAPLINE_CLIENT_CLEAR_HISTORY, address, size);
}

/* What lies in [from, from + size) is in [to, to + size), too, with its past: who raced with an
 * access there races with it here (section 3.4). What was known of [to, to + size) is forgotten;
 * locks and keys inside the range go along. The ranges may overlap. An object that moves away for
 * good is followed by a trapline_clear_history of where it was.
 *
 * Takes effect between two accesses of any other thread, at the time of the call: the caller sees
 * to it that no thread uses the new place before, or the old one after it. Leaves the guest, which
 * costs as much as a system call there: who moves many objects names them all in one call. */
static inline void trapline_copy_history(const volatile void* from, const volatile void* to,
                                         size_t size) {
  trapline_client_request(TRAPLINE_CLIENT_COPY_HISTORY, to, size, from);
}

struct trapline_history_move {
  const volatile void* from;
  const volatile void* to;
  size_t size; /* bytes */
};

/* The same for each of `count` moves (at most 2^20), in order, all of them as one. */
static inline void trapline_copy_histories(const struct trapline_history_move* moves,
                                           size_t count) {
  trapline_client_request(TRAPLINE_CLIENT_COPY_HISTORIES, moves, count, NULL);
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

/* Accesses by the calling thread do not count in between (section 3.1). Nests; TRAPLINE_READS and
 * _WRITES nest apart. */
enum trapline_accesses { TRAPLINE_READS = 1, TRAPLINE_WRITES = 2, TRAPLINE_READS_AND_WRITES = 3 };

static inline void trapline_ignore_begin(enum trapline_accesses accesses) {
  trapline_client_report(TRAPLINE_CLIENT_IGNORE_BEGIN, NULL, (uint64_t)accesses);
}

static inline void trapline_ignore_end(enum trapline_accesses accesses) {
  trapline_client_report(TRAPLINE_CLIENT_IGNORE_END, NULL, (uint64_t)accesses);
}

/* Synchronisation by the calling thread orders nothing in between (section 3.2). Nests. */
static inline void trapline_ignore_sync_begin(void) {
  trapline_client_report(TRAPLINE_CLIENT_IGNORE_SYNC_BEGIN, NULL, 0);
}

static inline void trapline_ignore_sync_end(void) {
  trapline_client_report(TRAPLINE_CLIENT_IGNORE_SYNC_END, NULL, 0);
}

/* -- User-level threads (fibers, green threads, coroutines that are resumed anywhere) --
 *
 * A fiber is a thread of its own to the detector, whoever carries it (section 3.5). It is known by
 * any address but NULL that the runtime chooses, unique while it exists. Locks that are held,
 * ignored accesses and ignored synchronisation are the fiber's, and stay with it from carrier to
 * carrier. */

/* Before it runs for the first time. What the caller has done so far happens before all it does. */
static inline void trapline_fiber_create(const volatile void* fiber) {
  trapline_client_report(TRAPLINE_CLIENT_FIBER_CREATE, fiber, 0);
}

/* The calling thread runs `fiber` from now on, until the next call; NULL: nothing but itself. Right
 * before the switch of stacks, in the function that makes it: what the thread still does there, in
 * that function's frame and 1 KiB below, counts as done by who ran before.
 * Orders nothing: what the language calls synchronisation (a spawn, a join, an
 * await) is reported as such, and the scheduler's own is best ignored. */
__attribute__((always_inline)) static inline void trapline_fiber_switch(
    const volatile void* fiber) {
  trapline_client_switch(fiber, 0);
}

/* The same where the switch itself hands over: what the running fiber has done happens before what
 * `fiber` does from now on. For coroutines that call each other. */
__attribute__((always_inline)) static inline void trapline_fiber_switch_ordered(
    const volatile void* fiber) {
  trapline_client_switch(fiber, 1);
}

/* It has ended and will not run again; it does not run now. */
static inline void trapline_fiber_destroy(const volatile void* fiber) {
  trapline_client_report(TRAPLINE_CLIENT_FIBER_DESTROY, fiber, 0);
}

/* Its name in reports, of which the first 15 bytes are kept. */
static inline void trapline_fiber_name(const volatile void* fiber, const char* name) {
  const struct trapline_client_interface* client = trapline_client();
  uint64_t text[2] = {0, 0};
  unsigned i;
  if (!client) return;
  for (i = 0; i < 15 && name[i]; ++i) text[i / 8] |= (uint64_t)(unsigned char)name[i] << i % 8 * 8;
  client->event(TRAPLINE_CLIENT_FIBER_NAME, (uint64_t)fiber, text[0], text[1]);
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
