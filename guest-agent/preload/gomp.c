/* OpenMP as GCC compiles it: the calls into libgomp, whose own threads wait for each other by
 * futexes and atomics that nobody looks at.
 *
 * A parallel region: what its creator did happens before each thread's part, and each part, and
 * each task, before what follows the region. Explicit tasks: what the creator did happens before
 * the task; the task before the taskwait, the end of the taskgroup, the barrier or the region that
 * waits for it, and, as the depend clauses say, before its successors. Who waits
 * for tasks of a parent or a group is ordered after every one that has ended, also one it need not
 * have waited for.
 *
 * Not here: detached tasks, target regions. LLVM's libomp is kmp.c's. */
#include <stdarg.h>
#include <stdbool.h>

#include "guest-agent/preload/openmp.h"

/* -- Teams: the threads of a parallel region -- */

/* Lives in the frame of the region's creator. The addresses of the first members are the keys by
 * which edges are reported; a member that is not 0 has been used as a key. */
struct Team {
  void* reductions; /* where libgomp looks for them in the data of a region */
  char begin;
  char end;
  char barrier;
  char tasks[2]; /* tasks that have ended, of the even and of the odd rounds */
  char ordered;
  char copied; /* copyprivate */
  char doacross;
  void (*body)(void*);
  void* data;
  uint64_t ip; /* of the region */
};

/* A task that runs, implicit (a thread's part of a region) or explicit. Lives until it and its
 * children have ended. */
struct Task {
  struct Team* team;
  uint64_t number;
  uint64_t runs_as; /* running_task of its code */
  struct TaskGroups groups;
  unsigned round;      /* how many barriers its thread had left when the task was made; an implicit
                        * one's goes on */
  int is_final;        /* its children are not deferred */
  int keys_used;       /* of its number */
  unsigned references; /* itself, and its children */
};
static __thread struct Task* current_task;

/* Null: no memory; then the task and its children are not followed. */
static struct Task* NewTask(struct Team* team, uint64_t number, uint64_t runs_as) {
  struct Task* task = TakeBlock(sizeof(*task));
  if (task)
    *task = (struct Task){.team = team, .number = number, .runs_as = runs_as, .references = 1};
  return task;
}

static void ReleaseTask(struct Task* task) {
  if (__atomic_sub_fetch(&task->references, 1, __ATOMIC_ACQ_REL)) return;
  if (task->keys_used) ForgetKeysOf(task->number);
  GiveBlock(task, sizeof(*task));
}

static struct Team* CurrentTeam(void) { return current_task ? current_task->team : NULL; }

static void UseAsKey(enum trapline_event_kind kind, char* key, uint64_t size, uint64_t ip) {
  __atomic_store_n(key, 1, __ATOMIC_RELAXED);
  Event(kind, key, size, ip);
}

static void Publish(char* key, uint64_t ip) { UseAsKey(TRAPLINE_HAPPENS_BEFORE, key, 0, ip); }

static void Receive(const char* key, uint64_t ip) {
  if (__atomic_load_n(key, __ATOMIC_RELAXED)) Event(TRAPLINE_HAPPENS_AFTER, key, 0, ip);
}

static void ForgetKey(const char* key, uint64_t ip) {
  if (__atomic_load_n(key, __ATOMIC_RELAXED)) Event(TRAPLINE_SYNC_DESTROYED, key, 0, ip);
}

/* A detached task ends when its event has been fulfilled, too, by whomever. Which task an event is
 * of is libgomp's secret: what waits for tasks comes after all events until then. */
static char fulfilled;

static void BeginRegion(struct Team* team, void (*body)(void*), void* data, uint64_t ip) {
  *team = (struct Team){.body = body, .data = data, .ip = ip};
  Publish(&team->begin, ip);
}

static void EndRegion(struct Team* team) {
  Receive(&team->end, team->ip);
  for (int parity = 0; parity < 2; ++parity) Receive(&team->tasks[parity], team->ip);
  Receive(&fulfilled, team->ip);
  for (const char* key = &team->begin; key <= &team->doacross; ++key) ForgetKey(key, team->ip);
}

/* Returns what the thread did before: for the end. */
static struct Task* BeginImplicitTask(struct Team* team) {
  struct Task* outer = current_task;
  Receive(&team->begin, team->ip);
  current_task = NewTask(team, NewOpenMpNumber(), running_task);
  return outer;
}

static void EndImplicitTask(struct Team* team, struct Task* outer) {
  if (current_task) ReleaseTask(current_task);
  current_task = outer;
  Publish(&team->end, team->ip);
}

/* What libgomp calls in each thread in place of the region's body. */
static void RunImplicitTask(void* argument) {
  struct Team* team = argument;
  struct Task* outer = BeginImplicitTask(team);
  team->body(team->data);
  EndImplicitTask(team, outer);
}

/* Runs a region by `name`, with RunImplicitTask in place of the body. */
#define RUN_REGION(name, ...)                     \
  REQUIRE(name);                                  \
  if (!runtime.agent) {                           \
    real.name(body, data, __VA_ARGS__);           \
    return;                                       \
  }                                               \
  struct Team team;                               \
  BeginRegion(&team, body, data, CALLER);         \
  real.name(RunImplicitTask, &team, __VA_ARGS__); \
  EndRegion(&team)

WRAPPER void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags) {
  RUN_REGION(GOMP_parallel, threads, flags);
}

WRAPPER void GOMP_parallel_sections(void (*body)(void*), void* data, unsigned threads,
                                    unsigned count, unsigned flags) {
  RUN_REGION(GOMP_parallel_sections, threads, count, flags);
}

WRAPPER unsigned GOMP_parallel_reductions(void (*body)(void*), void* data, unsigned threads,
                                          unsigned flags) {
  REQUIRE(GOMP_parallel_reductions);
  if (!runtime.agent) return real.GOMP_parallel_reductions(body, data, threads, flags);
  struct Team team;
  BeginRegion(&team, body, data, CALLER);
  team.reductions = *(void**)data;
  unsigned result = real.GOMP_parallel_reductions(RunImplicitTask, &team, threads, flags);
  EndRegion(&team);
  return result;
}

#define PARALLEL_LOOP(name)                                                                  \
  WRAPPER void name(void (*body)(void*), void* data, unsigned threads, long begin, long end, \
                    long step, long chunk, unsigned flags) {                                 \
    RUN_REGION(name, threads, begin, end, step, chunk, flags);                               \
  }
#define PARALLEL_LOOP_RUNTIME(name)                                                          \
  WRAPPER void name(void (*body)(void*), void* data, unsigned threads, long begin, long end, \
                    long step, unsigned flags) {                                             \
    RUN_REGION(name, threads, begin, end, step, flags);                                      \
  }

PARALLEL_LOOP(GOMP_parallel_loop_static)
PARALLEL_LOOP(GOMP_parallel_loop_dynamic)
PARALLEL_LOOP(GOMP_parallel_loop_guided)
PARALLEL_LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
PARALLEL_LOOP(GOMP_parallel_loop_nonmonotonic_guided)
PARALLEL_LOOP_RUNTIME(GOMP_parallel_loop_runtime)
PARALLEL_LOOP_RUNTIME(GOMP_parallel_loop_nonmonotonic_runtime)
PARALLEL_LOOP_RUNTIME(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

/* -- Regions as GCC before 4.9 compiled them: the creator starts the others, calls the body itself,
 * and ends the region. -- */

enum { kOpenRegions = 4 };
static __thread struct OpenRegion {
  struct Team team;
  struct Task* outer;
} open_regions[kOpenRegions];
static __thread int open_region_depth; /* may exceed kOpenRegions: those are not reported */

#define START_REGION(name, ...)                                                                    \
  REQUIRE(name);                                                                                   \
  struct OpenRegion* region =                                                                      \
      runtime.agent && open_region_depth < kOpenRegions ? &open_regions[open_region_depth] : NULL; \
  ++open_region_depth;                                                                             \
  if (region) BeginRegion(&region->team, body, data, CALLER);                                      \
  real.name(region ? RunImplicitTask : body, region ? &region->team : data, __VA_ARGS__);          \
  if (region) region->outer = BeginImplicitTask(&region->team)

#define START_PARALLEL_LOOP(name)                                                            \
  WRAPPER void name(void (*body)(void*), void* data, unsigned threads, long begin, long end, \
                    long step, long chunk) {                                                 \
    START_REGION(name, threads, begin, end, step, chunk);                                    \
  }

WRAPPER void GOMP_parallel_start(void (*body)(void*), void* data, unsigned threads) {
  START_REGION(GOMP_parallel_start, threads);
}

START_PARALLEL_LOOP(GOMP_parallel_loop_static_start)
START_PARALLEL_LOOP(GOMP_parallel_loop_dynamic_start)
START_PARALLEL_LOOP(GOMP_parallel_loop_guided_start)

WRAPPER void GOMP_parallel_loop_runtime_start(void (*body)(void*), void* data, unsigned threads,
                                              long begin, long end, long step) {
  START_REGION(GOMP_parallel_loop_runtime_start, threads, begin, end, step);
}

WRAPPER void GOMP_parallel_sections_start(void (*body)(void*), void* data, unsigned threads,
                                          unsigned count) {
  START_REGION(GOMP_parallel_sections_start, threads, count);
}

WRAPPER void GOMP_parallel_end(void) {
  REQUIRE(GOMP_parallel_end);
  if (open_region_depth > 0) --open_region_depth;
  struct OpenRegion* region =
      runtime.agent && open_region_depth < kOpenRegions ? &open_regions[open_region_depth] : NULL;
  if (region) EndImplicitTask(&region->team, region->outer);
  real.GOMP_parallel_end();
  if (region) EndRegion(&region->team);
}

/* -- Barriers, also those at the end of work-sharing constructs -- */

static uint64_t TeamSize(void) {
  return real.omp_get_num_threads ? (uint64_t)real.omp_get_num_threads() : 0;
}

/* The key of tasks that were made before the barrier at which `task`'s thread is next. Those of the
 * round after may have begun, and ended, before this thread has left; of the one after that none
 * can have. */
static char* TasksOfRound(struct Team* team, const struct Task* task) {
  return &team->tasks[task->round % 2];
}

/* Tasks may run while their threads wait. */
static void LeaveBarrier(struct Team* team, uint64_t threads, uint64_t ip) {
  Event(TRAPLINE_BARRIER_LEAVE, &team->barrier, threads, ip);
  Receive(TasksOfRound(team, current_task), ip);
  ++current_task->round;
  Receive(&fulfilled, ip);
}

#define BARRIER(name, parameters, arguments, waits)                              \
  WRAPPER void name parameters {                                                 \
    REQUIRE(name);                                                               \
    struct Team* team = runtime.agent && (waits) ? CurrentTeam() : NULL;         \
    uint64_t threads = team ? TeamSize() : 0;                                    \
    if (team) UseAsKey(TRAPLINE_BARRIER_ENTER, &team->barrier, threads, CALLER); \
    real.name arguments;                                                         \
    if (team) LeaveBarrier(team, threads, CALLER);                               \
  }

/* Threads that have been cancelled do not come. */
#define CANCELLABLE_BARRIER(name)                                          \
  WRAPPER bool name(void) {                                                \
    REQUIRE(name);                                                         \
    struct Team* team = runtime.agent ? CurrentTeam() : NULL;              \
    if (team) UseAsKey(TRAPLINE_BARRIER_ENTER, &team->barrier, 0, CALLER); \
    bool cancelled = real.name();                                          \
    if (team) LeaveBarrier(team, 0, CALLER);                               \
    return cancelled;                                                      \
  }

BARRIER(GOMP_barrier, (void), (), true)
BARRIER(GOMP_loop_end, (void), (), true)
BARRIER(GOMP_sections_end, (void), (), true)
/* The end of a construct whose reduction tasks take part in: one thread has combined the parts
 * since the construct's own barrier, and all wait for that here. */
BARRIER(GOMP_workshare_task_reduction_unregister, (bool cancelled), (cancelled), !cancelled)
CANCELLABLE_BARRIER(GOMP_barrier_cancel)
CANCELLABLE_BARRIER(GOMP_loop_end_cancel)
CANCELLABLE_BARRIER(GOMP_sections_end_cancel)

/* -- Order within a team: from who gives to who takes after it -- */

WRAPPER void* GOMP_single_copy_start(void) {
  REQUIRE(GOMP_single_copy_start);
  void* copied = real.GOMP_single_copy_start();
  struct Team* team = runtime.agent ? CurrentTeam() : NULL;
  if (team && copied) Receive(&team->copied, CALLER);
  return copied;
}

WRAPPER void GOMP_single_copy_end(void* data) {
  REQUIRE(GOMP_single_copy_end);
  struct Team* team = runtime.agent ? CurrentTeam() : NULL;
  if (team) Publish(&team->copied, CALLER);
  real.GOMP_single_copy_end(data);
}

WRAPPER void GOMP_ordered_start(void) {
  REQUIRE(GOMP_ordered_start);
  real.GOMP_ordered_start();
  struct Team* team = runtime.agent ? CurrentTeam() : NULL;
  if (team) Receive(&team->ordered, CALLER);
}

WRAPPER void GOMP_ordered_end(void) {
  REQUIRE(GOMP_ordered_end);
  struct Team* team = runtime.agent ? CurrentTeam() : NULL;
  if (team) Publish(&team->ordered, CALLER);
  real.GOMP_ordered_end();
}

static void PostDoacross(uint64_t ip) {
  struct Team* team = runtime.agent ? CurrentTeam() : NULL;
  if (team) Publish(&team->doacross, ip);
}

static void WaitDoacross(uint64_t ip) {
  struct Team* team = runtime.agent ? CurrentTeam() : NULL;
  if (team) Receive(&team->doacross, ip);
}

WRAPPER void GOMP_doacross_post(long* counts) {
  REQUIRE(GOMP_doacross_post);
  PostDoacross(CALLER);
  real.GOMP_doacross_post(counts);
}

WRAPPER void GOMP_doacross_ull_post(unsigned long long* counts) {
  REQUIRE(GOMP_doacross_ull_post);
  PostDoacross(CALLER);
  real.GOMP_doacross_ull_post(counts);
}

WRAPPER void GOMP_doacross_wait(long a, long b, long c, long d, long e, long f,
                                struct Dimensions rest) {
  REQUIRE(GOMP_doacross_wait);
  real.GOMP_doacross_wait(a, b, c, d, e, f, rest);
  WaitDoacross(CALLER);
}

WRAPPER void GOMP_doacross_ull_wait(unsigned long long a, unsigned long long b,
                                    unsigned long long c, unsigned long long d,
                                    unsigned long long e, unsigned long long f,
                                    struct Dimensions rest) {
  REQUIRE(GOMP_doacross_ull_wait);
  real.GOMP_doacross_ull_wait(a, b, c, d, e, f, rest);
  WaitDoacross(CALLER);
}

/* -- Critical sections and locks -- */

static char unnamed_critical;
static char unnamed_atomic;

#define ENTER(name, lock, ...) \
  REQUIRE(name);               \
  real.name(__VA_ARGS__);      \
  Event(TRAPLINE_ACQUIRE, lock, TRAPLINE_LOCK_MUTEX, CALLER)

#define LEAVE(name, lock, ...)                                \
  REQUIRE(name);                                              \
  Event(TRAPLINE_RELEASE, lock, TRAPLINE_LOCK_MUTEX, CALLER); \
  real.name(__VA_ARGS__)

WRAPPER void GOMP_critical_start(void) { ENTER(GOMP_critical_start, &unnamed_critical); }
WRAPPER void GOMP_critical_end(void) { LEAVE(GOMP_critical_end, &unnamed_critical); }
WRAPPER void GOMP_critical_name_start(void** name) { ENTER(GOMP_critical_name_start, name, name); }
WRAPPER void GOMP_critical_name_end(void** name) { LEAVE(GOMP_critical_name_end, name, name); }
WRAPPER void GOMP_atomic_start(void) { ENTER(GOMP_atomic_start, &unnamed_atomic); }
WRAPPER void GOMP_atomic_end(void) { LEAVE(GOMP_atomic_end, &unnamed_atomic); }

/* In C, and as Fortran calls them, with the same arguments. */
#define SET_LOCK(name) \
  WRAPPER void name(void* lock) { ENTER(name, lock, lock); }
#define UNSET_LOCK(name) \
  WRAPPER void name(void* lock) { LEAVE(name, lock, lock); }
#define TEST_LOCK(name)                                                    \
  WRAPPER int name(void* lock) {                                           \
    REQUIRE(name);                                                         \
    int taken = real.name(lock);                                           \
    if (taken) Event(TRAPLINE_ACQUIRE, lock, TRAPLINE_LOCK_MUTEX, CALLER); \
    return taken;                                                          \
  }
#define DESTROY_LOCK(name)                           \
  WRAPPER void name(void* lock) {                    \
    REQUIRE(name);                                   \
    real.name(lock);                                 \
    Event(TRAPLINE_SYNC_DESTROYED, lock, 0, CALLER); \
  }

SET_LOCK(omp_set_lock)
SET_LOCK(omp_set_lock_)
SET_LOCK(omp_set_nest_lock)
SET_LOCK(omp_set_nest_lock_)
UNSET_LOCK(omp_unset_lock)
UNSET_LOCK(omp_unset_lock_)
UNSET_LOCK(omp_unset_nest_lock)
UNSET_LOCK(omp_unset_nest_lock_)
TEST_LOCK(omp_test_lock)
TEST_LOCK(omp_test_lock_)
TEST_LOCK(omp_test_nest_lock)
TEST_LOCK(omp_test_nest_lock_)
DESTROY_LOCK(omp_destroy_lock)
DESTROY_LOCK(omp_destroy_lock_)
DESTROY_LOCK(omp_destroy_nest_lock)
DESTROY_LOCK(omp_destroy_nest_lock_)

/* -- Explicit tasks -- */

enum {
  kTaskFinal = 2,
  kTaskDepends = 8,
  kLoopDeferred = 1 << 10,
  kLoopWithoutGroup = 1 << 11,
  kTaskDetached = 1 << 13
};

/* What is passed to libgomp as a task's data: this, the dependences, the program's data. libgomp
 * copies it as a whole, or, of a task that it runs at once, leaves it where it is. */
struct TaskData {
  /* Of the program's data, what libgomp sets: a loop's begin and end (and its reductions), or a
   * detached task's event. */
  uint64_t head[3];
  void (*body)(void*);
  void (*copy)(void*, void*);
  struct Team* team;
  struct Task* parent;
  uint64_t number; /* of a loop: of its tasks' beginning alone */
  uint64_t group;  /* number; 0: none */
  uint64_t ip;
  void* source;  /* of the program's data, for `copy` */
  size_t offset; /* of the program's data from here */
  size_t size;   /* of all */
  size_t dependences;
  int is_loop;
  int is_final;
  int is_undeferred; /* its creator waits for it */
  int has_event;     /* before the program's other data */
};

static struct Dependence* DependencesOf(struct TaskData* data) {
  return (struct Dependence*)(data + 1);
}

static void* PayloadOf(struct TaskData* data) { return (char*)data + data->offset; }

/* Up to where the stack was used by a task that has ended, which ran in the frame at `frame`. */
static const char* StackUsed(const struct TaskData* data, const char* frame) {
  enum { kRuntimesFrames = 1 << 20 };
  const char* begin = (const char*)data;
  return begin > frame && begin - frame < kRuntimesFrames ? begin + data->size : frame;
}

/* What libgomp calls in place of a task's body. */
static void RunTask(void* argument) {
  struct TaskData* data = argument;
  struct Task* outer = current_task;
  const uint64_t before = running_task;
  const char* frame = __builtin_frame_address(0);
  const uint64_t number = data->is_loop ? NewOpenMpNumber() : data->number;
  struct Task* task = NewTask(data->team, number, data->is_undeferred ? before : number);
  current_task = task;
  if (task) {
    task->groups.outer = data->group;
    task->round = data->parent->round;
    task->is_final = data->is_final;
    task->keys_used = 1;
    if (!data->is_undeferred) BeginRunning(number, frame, data->ip);
  }
  ReceiveNumber(data->number, kTaskStart, data->ip);
  ReceiveDependences(DependencesOf(data), data->dependences, data->parent->number, data->ip);
  if (data->dependences) Receive(&fulfilled, data->ip);
  uint64_t* payload = PayloadOf(data);
  if (data->is_loop || data->has_event) payload[0] = data->head[0];
  if (data->is_loop) payload[1] = data->head[1];
  data->body(PayloadOf(data));
  current_task = outer;
  PublishDependences(DependencesOf(data), data->dependences, data->parent->number, data->ip);
  PublishNumber(data->parent->number, kTaskChildren, data->ip);
  PublishNumber(data->group, kTaskChildren, data->ip);
  Publish(TasksOfRound(data->team, data->parent), data->ip);
  if (task) {
    if (!data->is_undeferred) GoOnRunning(before, StackUsed(data, frame), number);
    ReleaseTask(task);
  }
  if (!data->is_loop) ReleaseTask(data->parent);
}

static void CopyBytes(char* to, const char* from, size_t size) {
  for (size_t i = 0; i < size; ++i) to[i] = from[i];
}

/* For data that are not copied by bytes. */
static void CopyTask(void* to, void* from) {
  const struct TaskData* source = from;
  CopyBytes(to, from, source->offset);
  if (source->has_event) *(uint64_t*)source->source = source->head[0];
  source->copy(PayloadOf(to), source->source);
  /* The copy is the program's code, made after the task was reported to begin. */
  PublishNumber(source->number, kTaskStart, source->ip);
}

static size_t RoundUp(size_t size, size_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

/* How a task's data grow by what is put before them. */
static size_t TaskAlignment(long alignment) {
  return alignment > (long)_Alignof(struct TaskData) ? (size_t)alignment
                                                     : _Alignof(struct TaskData);
}

static size_t PayloadOffset(size_t dependences, size_t alignment) {
  return RoundUp(sizeof(struct TaskData) + dependences * sizeof(struct Dependence), alignment);
}

static void EndGroup(struct TaskGroups* groups, uint64_t ip) {
  if (groups->depth == 0) return;
  const uint64_t group = GroupOf(groups);
  ReceiveNumber(group, kTaskChildren, ip);
  Receive(&fulfilled, ip);
  --groups->depth;
  if (groups->depth < kNestedGroups) ForgetKeysOf(group);
}

/* Objects in a depend clause's list: GCC's first form is {count, outs, objects...}, the second {0,
 * count, outs, mutual exclusions, ins, objects..., depend objects...}. */
static size_t CountDependences(void** list) { return (size_t)(list[0] ? list[0] : list[1]); }

static void ReadDependences(void** list, struct Dependence* dependences) {
  size_t count = CountDependences(list);
  int first_form = list[0] != NULL;
  size_t outs = first_form ? (size_t)list[1] : (size_t)list[2] + (size_t)list[3];
  size_t plain = first_form ? count : outs + (size_t)list[4];
  void** objects = list + (first_form ? 2 : 5);
  for (size_t i = 0; i < count; ++i) {
    if (i < plain) {
      dependences[i] = (struct Dependence){objects[i], i < outs};
    } else {
      enum { kDependIn = 1 };
      void** depend_object = objects[i];
      dependences[i] =
          (struct Dependence){depend_object[0], (uint64_t)depend_object[1] != kDependIn};
    }
  }
}

/* Fills in `task` for a task, or a loop of them, that the current one creates. */
static void PrepareTask(struct TaskData* task, void (*body)(void*), void* data,
                        void (*copy)(void*, void*), size_t size, size_t offset, uint64_t ip) {
  *task = (struct TaskData){.body = body,
                            .copy = copy,
                            .team = current_task->team,
                            .parent = current_task,
                            .number = NewOpenMpNumber(),
                            .group = GroupOf(&current_task->groups),
                            .ip = ip,
                            .source = data,
                            .offset = offset,
                            .size = offset + size,
                            .is_undeferred = current_task->is_final};
  current_task->keys_used = 1;
  /* A loop's creator waits for it, or is never forgotten. */
  __atomic_add_fetch(&current_task->references, 1, __ATOMIC_RELAXED);
  if (!copy) CopyBytes(PayloadOf(task), data, size);
  PublishNumber(task->number, kTaskStart, ip);
}

/* Room for a task's data on the stack, suitably aligned. */
#define TASK_ON_STACK(task, total, alignment) \
  char room[(total) + (alignment)];           \
  struct TaskData* task = (struct TaskData*)RoundUp((uint64_t)room, alignment)

/* `detach` is passed since GCC 11: before, it is not looked at. */
WRAPPER void GOMP_task(void (*body)(void*), void* data, void (*copy)(void*, void*), long size,
                       long alignment, bool deferred, unsigned flags, void** depend, int priority,
                       void* detach) {
  REQUIRE(GOMP_task);
  if (!runtime.agent || !current_task) {
    real.GOMP_task(body, data, copy, size, alignment, deferred, flags, depend, priority, detach);
    return;
  }
  size_t task_alignment = TaskAlignment(alignment);
  size_t dependences = flags & kTaskDepends ? CountDependences(depend) : 0;
  size_t offset = PayloadOffset(dependences, task_alignment);
  TASK_ON_STACK(task, offset + (size_t)size, task_alignment);
  PrepareTask(task, body, data, copy, (size_t)size, offset, CALLER);
  task->is_final = (flags & kTaskFinal) || current_task->is_final;
  task->is_undeferred = task->is_undeferred || !deferred;
  task->dependences = dependences;
  if (dependences) ReadDependences(depend, DependencesOf(task));
  const int detached = (flags & kTaskDetached) != 0;
  task->has_event = detached && data;
  real.GOMP_task(RunTask, task, copy ? CopyTask : NULL, (long)offset + size, (long)task_alignment,
                 deferred, flags, depend, priority, detach);
  if (detached && task->is_undeferred) Receive(&fulfilled, CALLER);
}

static void Fulfil(void (*fulfill)(uint64_t), uint64_t event, uint64_t ip) {
  Publish(&fulfilled, ip);
  /* libgomp may free the task, whose body another thread has run. */
  Event(TRAPLINE_IGNORE_BEGIN, NULL, kWrites, ip);
  fulfill(event);
  Event(TRAPLINE_IGNORE_END, NULL, kWrites, ip);
}

WRAPPER void omp_fulfill_event(uint64_t event) {
  REQUIRE(omp_fulfill_event);
  Fulfil(real.omp_fulfill_event, event, CALLER);
}

/* Fortran's. */
WRAPPER void omp_fulfill_event_(uint64_t event) {
  REQUIRE(omp_fulfill_event_);
  Fulfil(real.omp_fulfill_event_, event, CALLER);
}

/* A loop of tasks is a taskgroup of its own, unless the program says not. */
#define TASKLOOP(name, type)                                                                       \
  WRAPPER void name(void (*body)(void*), void* data, void (*copy)(void*, void*), long size,        \
                    long alignment, unsigned flags, unsigned long tasks, int priority, type begin, \
                    type end, type step) {                                                         \
    REQUIRE(name);                                                                                 \
    struct Task* creator = current_task;                                                           \
    if (!runtime.agent || !creator) {                                                              \
      real.name(body, data, copy, size, alignment, flags, tasks, priority, begin, end, step);      \
      return;                                                                                      \
    }                                                                                              \
    bool grouped = !(flags & kLoopWithoutGroup);                                                   \
    if (grouped) BeginGroup(&creator->groups);                                                     \
    size_t task_alignment = TaskAlignment(alignment);                                              \
    size_t offset = PayloadOffset(0, task_alignment);                                              \
    TASK_ON_STACK(task, offset + (size_t)size, task_alignment);                                    \
    PrepareTask(task, body, data, copy, (size_t)size, offset, CALLER);                             \
    task->is_loop = 1;                                                                             \
    task->is_final = (flags & kTaskFinal) || creator->is_final;                                    \
    task->is_undeferred = task->is_undeferred || !(flags & kLoopDeferred);                         \
    CopyBytes((char*)task->head, data,                                                             \
              (size_t)size < sizeof(task->head) ? (size_t)size : sizeof(task->head));              \
    real.name(RunTask, task, copy ? CopyTask : NULL, (long)offset + size, (long)task_alignment,    \
              flags, tasks, priority, begin, end, step);                                           \
    if (!grouped) return;                                                                          \
    EndGroup(&creator->groups, CALLER);                                                            \
    ForgetKeysOf(task->number);                                                                    \
    ReleaseTask(creator);                                                                          \
  }

TASKLOOP(GOMP_taskloop, long)
TASKLOOP(GOMP_taskloop_ull, unsigned long long)

WRAPPER void GOMP_taskwait(void) {
  REQUIRE(GOMP_taskwait);
  real.GOMP_taskwait();
  if (!runtime.agent || !current_task || !current_task->keys_used) return;
  ReceiveNumber(current_task->number, kTaskChildren, CALLER);
  Receive(&fulfilled, CALLER);
}

/* It waits for the children that the clauses name, and for no other. */
WRAPPER void GOMP_taskwait_depend(void** depend) {
  REQUIRE(GOMP_taskwait_depend);
  real.GOMP_taskwait_depend(depend);
  if (!runtime.agent || !current_task) return;
  size_t count = CountDependences(depend);
  struct Dependence dependences[count + 1];
  ReadDependences(depend, dependences);
  ReceiveDependences(dependences, count, current_task->number, CALLER);
  Receive(&fulfilled, CALLER);
}

WRAPPER void GOMP_taskgroup_start(void) {
  REQUIRE(GOMP_taskgroup_start);
  if (runtime.agent && current_task) BeginGroup(&current_task->groups);
  real.GOMP_taskgroup_start();
}

WRAPPER void GOMP_taskgroup_end(void) {
  REQUIRE(GOMP_taskgroup_end);
  real.GOMP_taskgroup_end();
  if (runtime.agent && current_task) EndGroup(&current_task->groups, CALLER);
}
