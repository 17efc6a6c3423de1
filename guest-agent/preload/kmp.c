/* OpenMP as LLVM's libomp runs it (and Intel's, which is the same): regions, barriers and tasks by
 * the callbacks that OpenMP offers to tools (OMPT), which the runtime asks for with
 * ompt_start_tool; locks, ordered sections and reductions by standing in front of the compiler's
 * calls, because a tool hears of a release only after another thread may have taken what was
 * released.
 *
 * What is ordered is what gomp.c orders for libgomp. Not here: target regions; programs whose
 * OMP_TOOL says `disabled`, or that bring a tool of their own in the same address space. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>

#include "guest-agent/preload/openmp.h"

/* -- The tool interface, as OpenMP 5.1 numbers things -- */

enum {
  kOnParallelBegin = 3,
  kOnParallelEnd = 4,
  kOnTaskCreate = 5,
  kOnTaskSchedule = 6,
  kOnImplicitTask = 7,
  kOnSyncRegionWait = 16,
  kOnDependences = 18,
  kOnSyncRegion = 23,
};

enum { kScopeBegin = 1, kScopeEnd = 2 };

enum {
  kSyncBarrierImplicit = 2, /* of older runtimes: the end of any construct */
  kSyncTaskwait = 5,
  kSyncTaskgroup = 6,
  kSyncReduction = 7,
  kSyncBarrierImplicitParallel = 9,
};

enum {
  kTaskCompleted = 1,
  kTaskCancelled = 3,
  kTaskDetach = 4,
  kTaskEarlyFulfilled = 5,
  kTaskLateFulfilled = 6,
  kTaskSwitched = 7,
  kTaskwaitCompleted = 8, /* a taskwait with a depend clause is a task that does nothing */
};

enum { kTaskwaits = 1 << 4, kTaskUndeferred = 1 << 27, kTaskUntied = 1 << 28 };

enum { kDependIn = 1, kDependSource = 5, kDependSink = 6 };

union ToolData {
  uint64_t value;
  void* pointer;
};

struct ToolDependence {
  union ToolData variable;
  int type;
};

typedef void (*Callback)(void);
typedef Callback (*Lookup)(const char* name);
typedef int (*SetCallback)(int event, Callback callback);

struct Tool {
  int (*initialise)(Lookup lookup, int device, union ToolData* tool_data);
  void (*finalise)(union ToolData* tool_data);
  union ToolData tool_data;
};

WRAPPER struct Tool* ompt_start_tool(unsigned version, const char* runtime_version);

/* -- Regions are numbers, tasks records -- */

/* Keys of a region's number. */
enum {
  kRegionBegin,
  kRegionEnd,
  kRegionBarrier,
  kRegionTasks, /* tasks that have ended */
  kRegionOrdered,
  kRegionParts,     /* of a reduction, before others combine them */
  kRegionReduction, /* what was combined */
};

struct KmpTask {
  uint64_t number;
  struct KmpTask* parent; /* null: none */
  unsigned references;    /* itself, and its children */
  uint64_t runs_as;       /* running_task of its code */
  uint64_t region;        /* number; 0: none */
  struct TaskGroups groups;
  unsigned threads;
  int started;
  int untied; /* it runs as what its thread does, for its function goes on after it has stopped */
  uint64_t ip;
  size_t dependence_count;
  struct Dependence* dependences;
  void* copy; /* of a loop's task, in the runtime's memory; else null */
};
static __thread struct KmpTask* current;

static struct KmpTask* NewTask(union ToolData* data) {
  struct KmpTask* task = TakeBlock(sizeof(*task));
  if (task)
    *task = (struct KmpTask){.number = NewOpenMpNumber(), .references = 1, .runs_as = running_task};
  data->pointer = task;
  return task;
}

static void ReleaseTask(struct KmpTask* task) {
  if (__atomic_sub_fetch(&task->references, 1, __ATOMIC_ACQ_REL)) return;
  ForgetKeysOf(task->number);
  GiveBlock(task, sizeof(*task));
}

static void ForgetTask(union ToolData* data) {
  struct KmpTask* task = data->pointer;
  data->pointer = NULL;
  if (task->dependences)
    GiveBlock(task->dependences, task->dependence_count * sizeof(struct Dependence));
  if (task->parent) ReleaseTask(task->parent);
  ReleaseTask(task);
}

static struct KmpTask* TaskOf(const union ToolData* data) { return data ? data->pointer : NULL; }

static uint64_t IpOf(const void* code, uint64_t fallback) {
  return code ? (uint64_t)code : fallback;
}

static void OnParallelBegin(union ToolData* creator, const void* frame, union ToolData* region,
                            unsigned threads, int flags, const void* code) {
  (void)creator, (void)frame, (void)threads, (void)flags;
  region->value = NewOpenMpNumber();
  PublishNumber(region->value, kRegionBegin, IpOf(code, 0));
}

static void OnParallelEnd(union ToolData* region, union ToolData* creator, int flags,
                          const void* code) {
  (void)flags;
  ReceiveNumber(region->value, kRegionEnd, IpOf(code, 0));
  ReceiveNumber(region->value, kRegionTasks, IpOf(code, 0));
  ForgetKeysOf(region->value);
  current = TaskOf(creator);
}

static void OnImplicitTask(int endpoint, union ToolData* region, union ToolData* data,
                           unsigned threads, unsigned index, int flags) {
  (void)index, (void)flags;
  if (endpoint == kScopeBegin) {
    struct KmpTask* task = NewTask(data);
    if (!task) return;
    task->region = region ? region->value : 0;
    task->threads = threads;
    task->started = 1;
    ReceiveNumber(task->region, kRegionBegin, 0);
    current = task;
  } else {
    struct KmpTask* task = TaskOf(data);
    if (!task) return;
    PublishNumber(task->region, kRegionEnd, 0);
    if (current == task) current = NULL;
    ForgetTask(data);
  }
}

/* -- Tasks' memory, which libomp hands out again without telling any allocator -- */

/* How a task's memory begins. What it shares with its creator lies in the same block. */
struct TaskMemory {
  void* shared;
  int (*entry)(int, void*);
};

/* How much there is, by the task's function: of a loop's tasks the runtime makes copies, without
 * asking for memory by a call that could be seen. Entries that meet are lost. */
enum { kTaskSizes = 256 };
static struct TaskSize {
  int (*entry)(int, void*);
  size_t size, shared_size;
} task_sizes[kTaskSizes];

static struct TaskSize* SizeOf(int (*entry)(int, void*)) {
  return &task_sizes[(uint64_t)entry / 16 % kTaskSizes];
}

/* The task that the thread asked for last, and how far a task lies behind the tool's data of it: 0:
 * not known. */
static __thread char* last_task;
static uint64_t task_distance;

static void ClearTaskMemory(const void* task, size_t size, size_t shared_size, uint64_t ip) {
  Event(TRAPLINE_CLEAR_HISTORY, task, size, ip);
  if (shared_size)
    Event(TRAPLINE_CLEAR_HISTORY, ((const struct TaskMemory*)task)->shared, shared_size, ip);
}

static void ClearCopy(const struct TaskMemory* copy, uint64_t ip) {
  const struct TaskSize known = *SizeOf(copy->entry);
  if (known.entry == copy->entry) ClearTaskMemory(copy, known.size, known.shared_size, ip);
}

WRAPPER void* __kmpc_omp_task_alloc(void* location, int thread, int flags, size_t size,
                                    size_t size_of_shared, int (*entry)(int, void*)) {
  REQUIRE(__kmpc_omp_task_alloc);
  void* task = real.__kmpc_omp_task_alloc(location, thread, flags, size, size_of_shared, entry);
  if (task && runtime.agent) {
    *SizeOf(entry) = (struct TaskSize){entry, size, size_of_shared};
    last_task = task;
    ClearTaskMemory(task, size, size_of_shared, CALLER);
  }
  return task;
}

/* The copy of a loop's task that has been made for `data`; null: it is no copy. */
static void* CopyOf(const union ToolData* data) {
  /* Less than what the runtime has before a task, so that no other task's is taken for it. */
  enum { kMostDistance = 192 };
  const uint64_t distance = __atomic_load_n(&task_distance, __ATOMIC_RELAXED);
  const uint64_t seen = (uint64_t)last_task - (uint64_t)data;
  if (distance) return seen == distance ? NULL : (char*)data + distance;
  if (seen < kMostDistance) __atomic_store_n(&task_distance, seen, __ATOMIC_RELAXED);
  return NULL;
}

static void OnTaskCreate(union ToolData* creator, const void* frame, union ToolData* data,
                         int flags, int has_dependences, const void* code) {
  (void)frame, (void)has_dependences;
  struct KmpTask* parent = TaskOf(creator);
  struct KmpTask* task = parent ? NewTask(data) : NULL;
  if (!task) return;
  task->parent = parent;
  __atomic_add_fetch(&parent->references, 1, __ATOMIC_RELAXED);
  task->untied = (flags & kTaskUntied) != 0;
  task->runs_as = flags & kTaskUndeferred ? parent->runs_as : task->number;
  task->region = parent->region;
  task->threads = parent->threads;
  task->groups.outer = GroupOf(&parent->groups);
  task->ip = IpOf(code, 0);
  if (!(flags & kTaskwaits)) task->copy = CopyOf(data);
  if (task->copy) ClearCopy(task->copy, task->ip);
  PublishNumber(task->number, kTaskStart, task->ip);
}

static void OnDependences(union ToolData* data, const struct ToolDependence* list, int count) {
  struct KmpTask* task = TaskOf(data);
  if (!task || task->dependences || count <= 0) return;
  if (list->type == kDependSource || list->type == kDependSink) return;
  size_t size = (size_t)count * sizeof(struct Dependence);
  task->dependences = TakeBlock(size);
  if (!task->dependences) return;
  task->dependence_count = (size_t)count;
  for (int i = 0; i < count; ++i)
    task->dependences[i] = (struct Dependence){list[i].variable.pointer, list[i].type != kDependIn};
}

static void EndTask(const struct KmpTask* task) {
  PublishDependences(task->dependences, task->dependence_count, task->parent->number, task->ip);
  PublishNumber(task->parent->number, kTaskChildren, task->ip);
  PublishNumber(task->groups.outer, kTaskChildren, task->ip);
  PublishNumber(task->region, kRegionTasks, task->ip);
}

/* Above what the runtime has on the stack when it tells of a switch, and below what the program
 * has. */
#define RUNTIMES_STACK ((const char*)__builtin_frame_address(0) + 256)

static void OnTaskSchedule(union ToolData* prior, int status, union ToolData* next) {
  struct KmpTask* ended = TaskOf(prior);
  uint64_t ended_running = 0; /* it was running_task */
  if (ended && ended->parent) {
    switch (status) {
      case kTaskCompleted:
      case kTaskCancelled:
      case kTaskLateFulfilled:
        EndTask(ended);
        if (ended->runs_as == ended->number) ended_running = ended->number;
        if (ended->copy) ClearCopy(ended->copy, ended->ip);
        ForgetTask(prior);
        break;
      case kTaskDetach: /* its code has ended */
        if (ended->runs_as == ended->number) ended_running = ended->number;
        EndTask(ended);
        break;
      case kTaskEarlyFulfilled:
        EndTask(ended);
        break;
      case kTaskwaitCompleted:
        ReceiveDependences(ended->dependences, ended->dependence_count, ended->parent->number,
                           ended->ip);
        ForgetTask(prior);
        break;
      case kTaskSwitched:
        if (ended->untied) PublishNumber(ended->number, kTaskStart, ended->ip);
        break;
      default:
        break;
    }
  }
  if (status == kTaskEarlyFulfilled || status == kTaskLateFulfilled || !TaskOf(next)) return;
  current = TaskOf(next);
  const int begins = !current->started;
  if (current->untied && (begins || status == kTaskSwitched)) {
    current->runs_as = running_task;
    if (!begins) ReceiveNumber(current->number, kTaskStart, current->ip);
  }
  if (begins && current->runs_as == current->number) {
    BeginRunning(current->number, RUNTIMES_STACK, current->ip);
  } else if (current->runs_as != running_task || ended_running) {
    GoOnRunning(current->runs_as, RUNTIMES_STACK, ended_running);
  }
  if (begins) {
    current->started = 1;
    ReceiveNumber(current->number, kTaskStart, current->ip);
    ReceiveDependences(current->dependences, current->dependence_count,
                       current->parent ? current->parent->number : 0, current->ip);
  }
}

static void OnSyncRegion(int kind, int endpoint, union ToolData* region, union ToolData* data,
                         const void* code) {
  (void)region; /* gone at the end of a region's last barrier */
  struct KmpTask* task = TaskOf(data);
  if (!task) return;
  uint64_t ip = IpOf(code, task->ip);
  switch (kind) {
    case kSyncTaskwait:
      if (endpoint == kScopeEnd) ReceiveNumber(task->number, kTaskChildren, ip);
      break;
    case kSyncTaskgroup:
      if (endpoint == kScopeBegin) {
        BeginGroup(&task->groups);
      } else if (task->groups.depth > 0) {
        ReceiveNumber(GroupOf(&task->groups), kTaskChildren, ip);
        --task->groups.depth;
      }
      break;
    case kSyncReduction:
      break;
    default:
      if (endpoint == kScopeBegin) {
        if (kind == kSyncBarrierImplicitParallel || kind == kSyncBarrierImplicit)
          PublishNumber(task->region, kRegionEnd, ip);
        if (kind != kSyncBarrierImplicitParallel && task->region)
          Event(TRAPLINE_BARRIER_ENTER, KeyOf(task->region, kRegionBarrier), task->threads, 0);
      } else if (kind != kSyncBarrierImplicitParallel && task->region) {
        Event(TRAPLINE_BARRIER_LEAVE, KeyOf(task->region, kRegionBarrier), task->threads, 0);
        ReceiveNumber(task->region, kRegionTasks, ip);
      }
  }
}

/* The end of waiting comes before what the construct still does, such as combining the tasks'
 * reductions. */
static void OnSyncRegionWait(int kind, int endpoint, union ToolData* region, union ToolData* data,
                             const void* code) {
  (void)region;
  struct KmpTask* task = TaskOf(data);
  if (task && kind == kSyncTaskgroup && endpoint == kScopeEnd)
    ReceiveNumber(GroupOf(&task->groups), kTaskChildren, IpOf(code, task->ip));
}

static int InitialiseTool(Lookup lookup, int device, union ToolData* tool_data) {
  (void)device, (void)tool_data;
  SetCallback set = (SetCallback)lookup("ompt_set_callback");
  if (!set) return 0;
  set(kOnParallelBegin, (Callback)OnParallelBegin);
  set(kOnParallelEnd, (Callback)OnParallelEnd);
  set(kOnTaskCreate, (Callback)OnTaskCreate);
  set(kOnTaskSchedule, (Callback)OnTaskSchedule);
  set(kOnImplicitTask, (Callback)OnImplicitTask);
  set(kOnDependences, (Callback)OnDependences);
  set(kOnSyncRegion, (Callback)OnSyncRegion);
  set(kOnSyncRegionWait, (Callback)OnSyncRegionWait);
  return 1;
}

static void FinaliseTool(union ToolData* tool_data) { (void)tool_data; }

struct Tool* ompt_start_tool(unsigned version, const char* runtime_version) {
  static struct Tool tool = {.initialise = InitialiseTool, .finalise = FinaliseTool};
  /* A tool of the program's own comes first; the runtime's definition looks no further. */
  struct Tool* (*next)(unsigned, const char*);
  *(void**)&next = FindNext("ompt_start_tool", NULL);
  struct Tool* other = next ? next(version, runtime_version) : NULL;
  if (other) return other;
  return ReadyAgent() ? &tool : NULL;
}

/* -- Critical sections and ordered -- */

static uint64_t Region(void) { return runtime.agent && current ? current->region : 0; }

WRAPPER void __kmpc_critical(void* location, int thread, void* name) {
  REQUIRE(__kmpc_critical);
  real.__kmpc_critical(location, thread, name);
  Event(TRAPLINE_ACQUIRE, name, TRAPLINE_LOCK_MUTEX, CALLER);
}

WRAPPER void __kmpc_critical_with_hint(void* location, int thread, void* name, unsigned hint) {
  REQUIRE(__kmpc_critical_with_hint);
  real.__kmpc_critical_with_hint(location, thread, name, hint);
  Event(TRAPLINE_ACQUIRE, name, TRAPLINE_LOCK_MUTEX, CALLER);
}

WRAPPER void __kmpc_end_critical(void* location, int thread, void* name) {
  REQUIRE(__kmpc_end_critical);
  Event(TRAPLINE_RELEASE, name, TRAPLINE_LOCK_MUTEX, CALLER);
  real.__kmpc_end_critical(location, thread, name);
}

WRAPPER void __kmpc_ordered(void* location, int thread) {
  REQUIRE(__kmpc_ordered);
  real.__kmpc_ordered(location, thread);
  ReceiveNumber(Region(), kRegionOrdered, CALLER);
}

WRAPPER void __kmpc_end_ordered(void* location, int thread) {
  REQUIRE(__kmpc_end_ordered);
  PublishNumber(Region(), kRegionOrdered, CALLER);
  real.__kmpc_end_ordered(location, thread);
}

WRAPPER void __kmpc_doacross_post(void* location, int thread, const void* iteration) {
  REQUIRE(__kmpc_doacross_post);
  PublishNumber(Region(), kRegionOrdered, CALLER);
  real.__kmpc_doacross_post(location, thread, iteration);
}

WRAPPER void __kmpc_doacross_wait(void* location, int thread, const void* iteration) {
  REQUIRE(__kmpc_doacross_wait);
  real.__kmpc_doacross_wait(location, thread, iteration);
  ReceiveNumber(Region(), kRegionOrdered, CALLER);
}

/* -- Reductions: each thread's part is combined by itself, under the runtime's lock, or by another
 * thread through the program's function. -- */

static __thread void (*combine)(void* to, void* from);

static void Combine(void* to, void* from) {
  uint64_t region = Region();
  ReceiveNumber(region, kRegionParts, 0);
  combine(to, from);
  PublishNumber(region, kRegionParts, 0);
}

#define REDUCE(name)                                                                               \
  WRAPPER int name(void* location, int thread, int variables, size_t size, void* data,             \
                   void (*function)(void*, void*), void* lock) {                                   \
    REQUIRE(name);                                                                                 \
    uint64_t region = Region();                                                                    \
    if (!region) return real.name(location, thread, variables, size, data, function, lock);        \
    combine = function;                                                                            \
    PublishNumber(region, kRegionParts, CALLER);                                                   \
    int way = real.name(location, thread, variables, size, data, function ? Combine : NULL, lock); \
    /* 2: by atomic instructions, which are seen. */                                               \
    if (way != 2) ReceiveNumber(region, kRegionReduction, CALLER);                                 \
    return way;                                                                                    \
  }

#define END_REDUCE(name)                                      \
  WRAPPER void name(void* location, int thread, void* lock) { \
    REQUIRE(name);                                            \
    PublishNumber(Region(), kRegionReduction, CALLER);        \
    real.name(location, thread, lock);                        \
  }

REDUCE(__kmpc_reduce)
REDUCE(__kmpc_reduce_nowait)
END_REDUCE(__kmpc_end_reduce_nowait)

/* Nobody goes on before all is combined. */
WRAPPER void __kmpc_end_reduce(void* location, int thread, void* lock) {
  REQUIRE(__kmpc_end_reduce);
  PublishNumber(Region(), kRegionReduction, CALLER);
  real.__kmpc_end_reduce(location, thread, lock);
  ReceiveNumber(Region(), kRegionReduction, CALLER);
}
