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
#include <sys/mman.h>

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
  kTaskEarlyFulfilled = 5,
  kTaskLateFulfilled = 6,
  kTaskwaitCompleted = 8, /* a taskwait with a depend clause is a task that does nothing */
};

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

/* -- Memory for what is known of tasks: of this library alone, never the heap. Blocks are given
 * back to whatever thread is done with them. -- */

enum { kSmallestBlock = 128, kBlockSizes = 12, kChunk = 1 << 16 };

struct Block {
  struct Block* next;
};
static __thread struct Block* free_blocks[kBlockSizes];
static __thread char* chunk;
static __thread size_t chunk_left;

static unsigned SizeClass(size_t size) {
  unsigned class = 0;
  while (((size_t)kSmallestBlock << class) < size) ++class;
  return class;
}

/* Null: no memory. */
static void* TakeBlock(size_t size) {
  unsigned class = SizeClass(size);
  if (class >= kBlockSizes) return NULL;
  struct Block* block = free_blocks[class];
  if (block) {
    free_blocks[class] = block->next;
    return block;
  }
  size_t needed = (size_t)kSmallestBlock << class;
  if (needed > chunk_left) {
    size_t mapped = needed > kChunk ? needed : kChunk;
    void* memory = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    chunk = memory;
    chunk_left = mapped;
  }
  void* taken = chunk;
  chunk += needed;
  chunk_left -= needed;
  return taken;
}

static void GiveBlock(void* memory, size_t size) {
  struct Block* block = memory;
  unsigned class = SizeClass(size);
  block->next = free_blocks[class];
  free_blocks[class] = block;
}

/* -- Regions are numbers, tasks records -- */

/* The edges of a region (the first keys) and of a task. */
enum {
  kRegionBegin,
  kRegionEnd,
  kRegionBarrier,
  kRegionTasks, /* tasks that have ended */
  kRegionOrdered,
  kRegionParts,     /* of a reduction, before others combine them */
  kRegionReduction, /* what was combined */
};
enum { kTaskStart, kTaskChildren };

enum { kNestedGroups = 16 };

struct KmpTask {
  uint64_t number;
  uint64_t parent; /* number; 0: none */
  uint64_t region; /* number; 0: none */
  uint64_t group;  /* number of the taskgroup it is part of; 0: none */
  uint64_t groups[kNestedGroups];
  int group_depth; /* of taskgroups begun in the task */
  unsigned threads;
  int started;
  uint64_t ip;
  size_t dependence_count;
  struct Dependence* dependences;
};
static __thread struct KmpTask* current;

static void Publish(uint64_t number, unsigned which, uint64_t ip) {
  if (number) Event(TRAPLINE_HAPPENS_BEFORE, KeyOf(number, which), 0, ip);
}

static void Receive(uint64_t number, unsigned which, uint64_t ip) {
  if (number) Event(TRAPLINE_HAPPENS_AFTER, KeyOf(number, which), 0, ip);
}

static struct KmpTask* NewTask(union ToolData* data) {
  struct KmpTask* task = TakeBlock(sizeof(*task));
  if (task) *task = (struct KmpTask){.number = NewOpenMpNumber()};
  data->pointer = task;
  return task;
}

static void ForgetTask(union ToolData* data) {
  struct KmpTask* task = data->pointer;
  data->pointer = NULL;
  if (task->dependences)
    GiveBlock(task->dependences, task->dependence_count * sizeof(struct Dependence));
  GiveBlock(task, sizeof(*task));
}

static struct KmpTask* TaskOf(const union ToolData* data) { return data ? data->pointer : NULL; }

static uint64_t IpOf(const void* code, uint64_t fallback) {
  return code ? (uint64_t)code : fallback;
}

static void OnParallelBegin(union ToolData* creator, const void* frame, union ToolData* region,
                            unsigned threads, int flags, const void* code) {
  (void)creator, (void)frame, (void)threads, (void)flags;
  region->value = NewOpenMpNumber();
  Publish(region->value, kRegionBegin, IpOf(code, 0));
}

static void OnParallelEnd(union ToolData* region, union ToolData* creator, int flags,
                          const void* code) {
  (void)flags;
  Receive(region->value, kRegionEnd, IpOf(code, 0));
  Receive(region->value, kRegionTasks, IpOf(code, 0));
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
    Receive(task->region, kRegionBegin, 0);
    current = task;
  } else {
    struct KmpTask* task = TaskOf(data);
    if (!task) return;
    Publish(task->region, kRegionEnd, 0);
    if (current == task) current = NULL;
    ForgetTask(data);
  }
}

static uint64_t GroupOf(const struct KmpTask* task) {
  if (task->group_depth == 0) return task->group;
  int inner = task->group_depth < kNestedGroups ? task->group_depth : kNestedGroups;
  return task->groups[inner - 1];
}

static void OnTaskCreate(union ToolData* creator, const void* frame, union ToolData* data,
                         int flags, int has_dependences, const void* code) {
  (void)frame, (void)flags, (void)has_dependences;
  struct KmpTask* parent = TaskOf(creator);
  struct KmpTask* task = parent ? NewTask(data) : NULL;
  if (!task) return;
  task->parent = parent->number;
  task->region = parent->region;
  task->threads = parent->threads;
  task->group = GroupOf(parent);
  task->ip = IpOf(code, 0);
  Publish(task->number, kTaskStart, task->ip);
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
  PublishDependences(task->dependences, task->dependence_count, task->parent, task->ip);
  Publish(task->parent, kTaskChildren, task->ip);
  Publish(task->group, kTaskChildren, task->ip);
  Publish(task->region, kRegionTasks, task->ip);
}

static void OnTaskSchedule(union ToolData* prior, int status, union ToolData* next) {
  struct KmpTask* ended = TaskOf(prior);
  if (ended && ended->parent) {
    switch (status) {
      case kTaskCompleted:
      case kTaskCancelled:
      case kTaskLateFulfilled:
        EndTask(ended);
        ForgetTask(prior);
        break;
      case kTaskEarlyFulfilled:
        EndTask(ended);
        break;
      case kTaskwaitCompleted:
        ReceiveDependences(ended->dependences, ended->dependence_count, ended->parent, ended->ip);
        ForgetTask(prior);
        break;
      default:
        break;
    }
  }
  if (status == kTaskEarlyFulfilled || status == kTaskLateFulfilled || !TaskOf(next)) return;
  current = TaskOf(next);
  if (!current->started) {
    current->started = 1;
    Receive(current->number, kTaskStart, current->ip);
    ReceiveDependences(current->dependences, current->dependence_count, current->parent,
                       current->ip);
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
      if (endpoint == kScopeEnd) Receive(task->number, kTaskChildren, ip);
      break;
    case kSyncTaskgroup:
      if (endpoint == kScopeBegin) {
        if (task->group_depth < kNestedGroups) task->groups[task->group_depth] = NewOpenMpNumber();
        ++task->group_depth;
      } else if (task->group_depth > 0) {
        Receive(GroupOf(task), kTaskChildren, ip);
        --task->group_depth;
      }
      break;
    case kSyncReduction:
      break;
    default:
      if (endpoint == kScopeBegin) {
        if (kind == kSyncBarrierImplicitParallel || kind == kSyncBarrierImplicit)
          Publish(task->region, kRegionEnd, ip);
        if (kind != kSyncBarrierImplicitParallel && task->region)
          Event(TRAPLINE_BARRIER_ENTER, KeyOf(task->region, kRegionBarrier), task->threads, 0);
      } else if (kind != kSyncBarrierImplicitParallel && task->region) {
        Event(TRAPLINE_BARRIER_LEAVE, KeyOf(task->region, kRegionBarrier), task->threads, 0);
        Receive(task->region, kRegionTasks, ip);
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
    Receive(GroupOf(task), kTaskChildren, IpOf(code, task->ip));
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
  *(void**)&next = dlsym(RTLD_NEXT, "ompt_start_tool");
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
  Receive(Region(), kRegionOrdered, CALLER);
}

WRAPPER void __kmpc_end_ordered(void* location, int thread) {
  REQUIRE(__kmpc_end_ordered);
  Publish(Region(), kRegionOrdered, CALLER);
  real.__kmpc_end_ordered(location, thread);
}

WRAPPER void __kmpc_doacross_post(void* location, int thread, const void* iteration) {
  REQUIRE(__kmpc_doacross_post);
  Publish(Region(), kRegionOrdered, CALLER);
  real.__kmpc_doacross_post(location, thread, iteration);
}

WRAPPER void __kmpc_doacross_wait(void* location, int thread, const void* iteration) {
  REQUIRE(__kmpc_doacross_wait);
  real.__kmpc_doacross_wait(location, thread, iteration);
  Receive(Region(), kRegionOrdered, CALLER);
}

/* -- Reductions: each thread's part is combined by itself, under the runtime's lock, or by another
 * thread through the program's function. -- */

static __thread void (*combine)(void* to, void* from);

static void Combine(void* to, void* from) {
  uint64_t region = Region();
  Receive(region, kRegionParts, 0);
  combine(to, from);
  Publish(region, kRegionParts, 0);
}

#define REDUCE(name)                                                                               \
  WRAPPER int name(void* location, int thread, int variables, size_t size, void* data,             \
                   void (*function)(void*, void*), void* lock) {                                   \
    REQUIRE(name);                                                                                 \
    uint64_t region = Region();                                                                    \
    if (!region) return real.name(location, thread, variables, size, data, function, lock);        \
    combine = function;                                                                            \
    Publish(region, kRegionParts, CALLER);                                                         \
    int way = real.name(location, thread, variables, size, data, function ? Combine : NULL, lock); \
    /* 2: by atomic instructions, which are seen. */                                               \
    if (way != 2) Receive(region, kRegionReduction, CALLER);                                       \
    return way;                                                                                    \
  }

#define END_REDUCE(name)                                      \
  WRAPPER void name(void* location, int thread, void* lock) { \
    REQUIRE(name);                                            \
    Publish(Region(), kRegionReduction, CALLER);              \
    real.name(location, thread, lock);                        \
  }

REDUCE(__kmpc_reduce)
REDUCE(__kmpc_reduce_nowait)
END_REDUCE(__kmpc_end_reduce_nowait)

/* Nobody goes on before all is combined. */
WRAPPER void __kmpc_end_reduce(void* location, int thread, void* lock) {
  REQUIRE(__kmpc_end_reduce);
  Publish(Region(), kRegionReduction, CALLER);
  real.__kmpc_end_reduce(location, thread, lock);
  Receive(Region(), kRegionReduction, CALLER);
}

/* -- Tasks' memory, which libomp hands out again without telling any allocator. The first word of a
 * task points to what it shares with its creator, which lies in the same block. -- */

WRAPPER void* __kmpc_omp_task_alloc(void* location, int thread, int flags, size_t size,
                                    size_t size_of_shared, int (*entry)(int, void*)) {
  REQUIRE(__kmpc_omp_task_alloc);
  void* task = real.__kmpc_omp_task_alloc(location, thread, flags, size, size_of_shared, entry);
  if (task && runtime.agent) {
    Event(TRAPLINE_CLEAR_HISTORY, task, size, CALLER);
    if (size_of_shared) Event(TRAPLINE_CLEAR_HISTORY, *(void**)task, size_of_shared, CALLER);
  }
  return task;
}
