/* What code inside the guest tells the monitor: the interface between the preload library (and
 * whoever else speaks for the program's runtime) and the agent. C, because the preload library is
 * C.
 *
 * The monitor puts an auxiliary vector entry of type TRAPLINE_AT_AGENT before the program: its
 * value is the address of a trapline_agent_interface. Without the entry the program does not run
 * under Trapline, and nothing is reported.
 *
 * Order: an event that gives something away (release, happens-before, free) is reported BEFORE the
 * real operation, one that gains something (acquire, happens-after, allocate) AFTER it. Then the
 * order of the reports of two threads agrees with the order of the operations wherever the
 * operations order the threads. */
#ifndef TRAPLINE_GUEST_AGENT_EVENTS_H_
#define TRAPLINE_GUEST_AGENT_EVENTS_H_

#include <stdint.h> /* NOLINT(modernize-deprecated-headers): C, too */

#define TRAPLINE_AT_AGENT 0x54524150 /* "TRAP" */
#define TRAPLINE_AGENT_INTERFACE_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/* `address` names the object; `size` in bytes where the event has a range, else see the comment. */
enum trapline_event_kind {
  TRAPLINE_ACQUIRE = 1,    /* lock `address` taken exclusively; size = enum trapline_lock_kind */
  TRAPLINE_RELEASE,        /* ... is about to be given back */
  TRAPLINE_ACQUIRE_SHARED, /* the reader side */
  TRAPLINE_RELEASE_SHARED,
  TRAPLINE_HAPPENS_BEFORE, /* publishes the thread's clock on key `address` */
  TRAPLINE_HAPPENS_AFTER,  /* joins what was published on key `address` */
  TRAPLINE_BARRIER_ENTER,  /* about to wait at barrier `address` */
  TRAPLINE_BARRIER_LEAVE,
  TRAPLINE_JOIN, /* thread number `address` (trapline_agent_interface.thread) has been waited for */
  TRAPLINE_SYNC_DESTROYED, /* lock or barrier `address` is no more: counts as a write to it */
  TRAPLINE_ALLOCATE,       /* [address, address+size) is a heap block now, allocated at `ip` */
  TRAPLINE_FREE, /* heap block `address` is about to be freed; size = its usable size, 0 = unknown
                  */
  TRAPLINE_CLEAR_HISTORY, /* [address, address+size) is fresh memory from now on */
  TRAPLINE_IGNORE_BEGIN,  /* accesses of this thread do not count; size: 1 = reads, 2 = writes, 3 =
                             both; nests */
  TRAPLINE_IGNORE_END,
  TRAPLINE_IGNORE_SYNC_BEGIN, /* synchronisation of this thread does not count; nests */
  TRAPLINE_IGNORE_SYNC_END,
  TRAPLINE_BENIGN_RACE,   /* races on [address, address+size) are not reported */
  TRAPLINE_UNTRACK,       /* accesses to [address, address+size) do not count, by anyone */
  TRAPLINE_TRACK,         /* ... count again */
  TRAPLINE_THREAD_NAME,   /* `address` points to the calling thread's new name, zero-terminated */
  TRAPLINE_READ,          /* the caller at `ip` reads [address, address+size): mem*, str*, printf */
  TRAPLINE_WRITE,         /* ... writes ... */
  TRAPLINE_ATOMIC_READ,   /* ... by an atomic operation, also an acquire */
  TRAPLINE_ATOMIC_WRITE,  /* ... also a release */
  TRAPLINE_ATOMIC_UPDATE, /* read-modify-write: both */
  TRAPLINE_SYNC_CREATED, /* lock, barrier or condition variable `address` is initialised: written */
  TRAPLINE_SYNC_USED, /* condition variable `address` is about to be signalled: touched, no order */
  TRAPLINE_JOIN_BEGIN, /* about to wait, as long as it takes, for the end of the thread whose
                          pthread_t `address` is */
  TRAPLINE_EVENT_KINDS,

  /* What a language runtime says of its memory and threads. */
  TRAPLINE_COPY_HISTORY = 40, /* `access`'s: history of [ip, ip+size) is that of [address, +size) */
  TRAPLINE_COPY_HISTORIES,    /* `access`'s: `size` trapline_history_copy at `address`, in order */
  TRAPLINE_AFTER_ALL,         /* `access`'s: all that any thread did so far happens before now */
  TRAPLINE_FIBER_CREATE,      /* user-level thread `address` (any number but 0) exists */
  TRAPLINE_FIBER_SWITCH, /* the thread runs it from now on, 0: itself. size: bit 0, whether what
                            was done so far happens before that; bits 1-15, how many words of
                            the stack from the pointer up are still used by who ran before,
                            until the stack is changed; from bit 16 on, the stack pointer */
  TRAPLINE_FIBER_DESTROY,
  TRAPLINE_FIBER_NAME,  /* ... is called by the 16 bytes in size and ip, zero-padded */
  TRAPLINE_TASK_SWITCH, /* the thread runs task number `address` from now on, 0: none. size: bit 0,
                           whether the task begins, at `ip`; else `ip` is the number of the task
                           that has ended, or 0; from bit 1 on, the address below which the
                           thread's stack is fresh */
  TRAPLINE_TASK_OF_THREAD /* the task uses what belongs to the thread that runs it */
};

/* In TRAPLINE_FIBER_SWITCH: the thread of this number itself, wherever it runs. */
#define TRAPLINE_FIBER_OF_THREAD (3ull << 62)

struct trapline_history_copy {
  uint64_t from, to, size;
};

enum trapline_lock_kind {
  TRAPLINE_LOCK_UNKNOWN,
  TRAPLINE_LOCK_MUTEX,
  TRAPLINE_LOCK_RWLOCK,
  TRAPLINE_LOCK_SPINLOCK,
  TRAPLINE_LOCK_ANNOTATED
};

struct trapline_agent_interface {
  uint32_t version;
  uint32_t size; /* of this structure */
  /* Queues an event of the calling thread; async-signal-safe, no exit unless the thread's queue is
   * full. `ip`: the program's instruction to blame (usually the return address into the program).
   * Never for TRAPLINE_READ to
   * TRAPLINE_ATOMIC_UPDATE and what else says so, which are `access`'s. */
  void (*event)(uint64_t kind, uint64_t address, uint64_t size, uint64_t ip);
  /* An access by the program's code at `ip`: TRAPLINE_READ ... TRAPLINE_ATOMIC_UPDATE. No exit
   * while accesses are not tracked, nor for reads and writes from the code cache, which are queued,
   * and from hot code on its own pages, which do not count; otherwise checked at once.
   * `stack_pointer`: the program's stack pointer right after the call returns, from which its
   * frames are found.
   * Events that say they are `access`'s leave the guest while accesses are tracked: they take
   * effect at once and as one, with respect to all threads. */
  void (*access)(uint64_t kind, uint64_t address, uint64_t size, uint64_t ip,
                 uint64_t stack_pointer);
  /* The calling thread's number: 0 for the initial thread, never reused. */
  uint64_t (*thread)(void);
  /* Non-zero once more than one thread is or has been alive and accesses are tracked. */
  uint64_t (*tracking)(void);
};

#ifdef __cplusplus
}
#endif

#endif
