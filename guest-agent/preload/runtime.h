/* What every wrapper of the preload library stands on: the functions it stands in front of, and
 * the way to the agent.
 *
 * The library is preloaded into everything, so it depends on libc alone, is ready at whatever call
 * comes first (the dynamic loader allocates before any constructor runs), and only forwards when
 * the program does not run under the monitor. Its own state lies in its own pages, never in the
 * heap: a heap page that two threads touch would be a shared page of the program. */
#ifndef TRAPLINE_GUEST_AGENT_PRELOAD_RUNTIME_H_
#define TRAPLINE_GUEST_AGENT_PRELOAD_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#include "guest-agent/events.h"
#include "guest-agent/preload/real_functions.h"

/* A function the program calls instead of libc's. */
#define WRAPPER __attribute__((visibility("default")))

/* Shared between the library's files. */
#define INTERNAL __attribute__((visibility("hidden")))

/* The instruction to blame, and the program's stack pointer once the wrapper has returned. Only in
 * a wrapper itself, never in a function it calls. */
#define CALLER ((uint64_t)__builtin_return_address(0))
#define CALLER_STACK ((uint64_t)__builtin_dwarf_cfa())

typedef struct trapline_agent_interface Agent;

enum RuntimeState { kRuntimeUnused, kRuntimeInitialising, kRuntimeReady };

struct Runtime {
  enum RuntimeState state;
  const Agent* agent; /* null: not under the monitor */
  int allocator_is_libc;
  /* C11 threads are libc's: other libraries define functions of the same names, with results of
   * their own, on top of pthreads. */
  int c11_is_libc;
  /* Code of an allocator other than libc's: its locks are no business of the program's. */
  uint64_t allocator_begin, allocator_size;
  uint64_t loader_begin, loader_size; /* the dynamic loader's code and data */
  uint64_t own_begin, own_size;       /* this library's */
};
INTERNAL extern struct Runtime runtime;

/* Finds the real functions and the agent. Called by whichever comes first of a wrapper and the
 * library's constructor, so before the program can have a second thread. Returns without doing
 * anything if the library itself has not been relocated yet. */
INTERNAL void Initialise(void);

/* Whether the real functions are known. False only while the loader relocates and inside
 * Initialise: what can be called then must have a way to do without. */
static inline int Ready(void) {
  if (__builtin_expect(runtime.state != kRuntimeReady, 0)) Initialise();
  return runtime.state == kRuntimeReady;
}

/* The agent, null if there is none to report to. */
static inline const Agent* ReadyAgent(void) {
  Ready();
  return runtime.agent;
}

/* The same for functions of C11's threads.h. */
static inline const Agent* ReadyC11Agent(void) {
  Ready();
  return runtime.c11_is_libc ? runtime.agent : NULL;
}

/* Of TRAPLINE_IGNORE_BEGIN and _END. */
enum { kReads = 1, kWrites = 2, kReadsAndWrites = 3 };

/* While it is not 0, the locks that the thread uses are a library's own means, and not told of. */
INTERNAL extern __thread unsigned own_locks;

static inline int IsOfLocks(enum trapline_event_kind kind) {
  return kind <= TRAPLINE_RELEASE_SHARED || kind == TRAPLINE_SYNC_USED;
}

static inline void Event(enum trapline_event_kind kind, const volatile void* object, uint64_t size,
                         uint64_t ip) {
  const Agent* agent = runtime.agent;
  if (IsOfLocks(kind) && __builtin_expect(own_locks != 0, 0)) return;
  if (agent && ip - runtime.allocator_begin >= runtime.allocator_size)
    agent->event(kind, (uint64_t)object, size, ip);
}

/* One of those that take effect at once, for all threads. */
static inline void Request(enum trapline_event_kind kind, uint64_t address, uint64_t size,
                           uint64_t other) {
  if (runtime.agent) runtime.agent->access(kind, address, size, other, 0);
}

/* The agent while accesses count, else null. */
static inline const Agent* TrackingAgent(void) {
  const Agent* agent = ReadyAgent();
  return __builtin_expect(agent != NULL, 0) && agent->tracking() ? agent : NULL;
}

/* Where an access is reported to come from. */
struct Site {
  const Agent* agent;
  uint64_t ip;
  uint64_t stack;
};

/* The site of a wrapper's caller; without agent while accesses do not count. */
#define SITE \
  { TrackingAgent(), CALLER, CALLER_STACK }

static inline void Reads(struct Site site, const volatile void* address, size_t size) {
  if (size != 0) site.agent->access(TRAPLINE_READ, (uint64_t)address, size, site.ip, site.stack);
}

static inline void Writes(struct Site site, const volatile void* address, size_t size) {
  if (size != 0) site.agent->access(TRAPLINE_WRITE, (uint64_t)address, size, site.ip, site.stack);
}

/* The definition of `name` that follows this library's, null if there is none. `version`: null for
 * the default one. */
INTERNAL void* FindNext(const char* name, const char* version);

/* The function named `name` that a caller at `caller` would have reached without this library, for
 * libraries that came with dlopen. Null if there is none. The library found stays loaded. */
INTERNAL void* FindLate(const char* name, const char* version, uint64_t caller);

/* As FindLate, but ends the process with the message the dynamic loader would have given. */
INTERNAL void* FindLateOrDie(const char* name, const char* version, uint64_t caller);

/* For a wrapper of an optional function, before it calls the real one. */
#define REQUIRE(name)                                           \
  do {                                                          \
    Ready();                                                    \
    if (__builtin_expect(real.name == NULL, 0))                 \
      *(void**)&real.name = FindLateOrDie(#name, NULL, CALLER); \
  } while (0)

/* The initial thread can be waited for like any other. (threads.c) */
INTERNAL void RegisterInitialThread(void);

/* Takes this library out of LD_PRELOAD in `environment`, in place. (environment.c) */
INTERNAL void RestoreEnvironment(char** environment);

/* The calling thread is called `name` from now on. (threads.c) */
INTERNAL void ReportThreadName(const char* name, uint64_t ip);

#endif
