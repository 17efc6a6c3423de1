/* What both OpenMP runtimes' tasks have in common: memory for what is known of them, keys for
 * edges, who runs them, and what depend clauses order. */
#ifndef TRAPLINE_GUEST_AGENT_PRELOAD_OPENMP_H_
#define TRAPLINE_GUEST_AGENT_PRELOAD_OPENMP_H_

#include "guest-agent/preload/runtime.h"

/* A number that no other task, group or region has had. Edges are reported by keys made of such
 * numbers, not by addresses: stack and heap are used again while a key may still stand for
 * something. */
INTERNAL uint64_t NewOpenMpNumber(void);

/* Memory of this library alone, never the heap. Null: there is none, or `size` is more than 256
 * KiB. Whichever thread is done with a block gives it back, with its size. */
INTERNAL void* TakeBlock(size_t size);
INTERNAL void GiveBlock(void* block, size_t size);

/* Keys are no canonical addresses, so that nothing of the program's can be in the way. */
enum { kKeysOfNumber = 8 };
static inline const void* KeyOf(uint64_t number, unsigned which) {
  static const uint64_t kKeys = (uint64_t)1 << 62;
  return (const void*)(kKeys + number * kKeysOfNumber + which);
}

/* Nobody will ask for the keys of `number` again. */
static inline void ForgetKeysOf(uint64_t number) {
  Event(TRAPLINE_CLEAR_HISTORY, KeyOf(number, 0), kKeysOfNumber, 0);
}

static inline void PublishNumber(uint64_t number, unsigned which, uint64_t ip) {
  if (number) Event(TRAPLINE_HAPPENS_BEFORE, KeyOf(number, which), 0, ip);
}

static inline void ReceiveNumber(uint64_t number, unsigned which, uint64_t ip) {
  if (number) Event(TRAPLINE_HAPPENS_AFTER, KeyOf(number, which), 0, ip);
}

/* Keys of a task's number, and of a taskgroup's. */
enum { kTaskStart, kTaskChildren };

/* A task's taskgroups, by their numbers. */
enum { kNestedGroups = 16 };
struct TaskGroups {
  uint64_t outer; /* the one that the task is part of; 0: none */
  uint64_t begun[kNestedGroups];
  int depth; /* of those begun in the task; may exceed kNestedGroups */
};

/* The number of the taskgroup that new tasks are part of; 0: none. */
static inline uint64_t GroupOf(const struct TaskGroups* groups) {
  if (groups->depth == 0) return groups->outer;
  int inner = groups->depth < kNestedGroups ? groups->depth : kNestedGroups;
  return groups->begun[inner - 1];
}

static inline void BeginGroup(struct TaskGroups* groups) {
  if (groups->depth < kNestedGroups) groups->begun[groups->depth] = NewOpenMpNumber();
  ++groups->depth;
}

/* An explicit task is a thread of its own to the detector, unless its creator waits for it to end.
 * The task, by its number, as which the calling thread's doings count; 0: none. */
INTERNAL extern __thread uint64_t running_task;

/* Task `number` begins, created at `ip`. What lies below `stack` on the calling thread's stack is
 * the task's. */
static inline void BeginRunning(uint64_t number, const void* stack, uint64_t ip) {
  running_task = number;
  Event(TRAPLINE_TASK_SWITCH, (const void*)number, (uint64_t)stack << 1 | 1, ip);
}

/* The thread goes on with task `number`, which has begun before; 0: with none. `ended`: the task
 * that it ran until now, if that has ended, else 0. */
static inline void GoOnRunning(uint64_t number, const void* stack, uint64_t ended) {
  running_task = number;
  Event(TRAPLINE_TASK_SWITCH, (const void*)number, (uint64_t)stack << 1, ended);
}

/* An object of a depend clause. */
struct Dependence {
  const char* object;
  int writes; /* out and the like: after all before it; in: after the last out only */
};

/* A clause orders tasks of the same parent only. Readers publish apart, so that they are not
 * ordered among each other. Two objects that share a key would be an edge too many. */
static inline const void* DependenceKey(uint64_t parent, const char* object, int readers) {
  static const uint64_t kDependences = (uint64_t)1 << 61;
  uint64_t mixed = ((uint64_t)object ^ parent * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
  mixed ^= mixed >> 32;
  return (const void*)(kDependences | mixed >> 4 << 1 | (uint64_t)(readers != 0));
}

/* What a task that depends so may begin after: also a taskwait that depends. */
static inline void ReceiveDependences(const struct Dependence* dependences, size_t count,
                                      uint64_t parent, uint64_t ip) {
  for (size_t i = 0; i < count; ++i) {
    const char* object = dependences[i].object;
    Event(TRAPLINE_HAPPENS_AFTER, DependenceKey(parent, object, 0), 0, ip);
    if (dependences[i].writes)
      Event(TRAPLINE_HAPPENS_AFTER, DependenceKey(parent, object, 1), 0, ip);
  }
}

static inline void PublishDependences(const struct Dependence* dependences, size_t count,
                                      uint64_t parent, uint64_t ip) {
  for (size_t i = 0; i < count; ++i) {
    const int readers = !dependences[i].writes;
    Event(TRAPLINE_HAPPENS_BEFORE, DependenceKey(parent, dependences[i].object, readers), 0, ip);
  }
}

#endif
