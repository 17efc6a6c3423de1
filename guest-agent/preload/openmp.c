/* What both OpenMP runtimes' tasks have in common (openmp.h), and the calls by which a task uses
 * what belongs to the thread that runs it: tasks of one thread do not race for that. */
#include "guest-agent/preload/openmp.h"

#include <sys/mman.h>

uint64_t NewOpenMpNumber(void) {
  static uint64_t used;
  return __atomic_add_fetch(&used, 1, __ATOMIC_RELAXED);
}

/* -- Memory -- */

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

void* TakeBlock(size_t size) {
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

void GiveBlock(void* memory, size_t size) {
  struct Block* block = memory;
  unsigned class = SizeClass(size);
  block->next = free_blocks[class];
  free_blocks[class] = block;
}

/* -- What belongs to a thread -- */

__thread uint64_t running_task;

static void UseThread(uint64_t ip) {
  if (running_task) Event(TRAPLINE_TASK_OF_THREAD, NULL, 0, ip);
}

/* A task that knows its thread's number may have a place of its thread's own by it. Programs
 * without OpenMP ask, too, if they find the function: there is one thread then. */
#define THREAD_NUMBER(name)                                \
  WRAPPER int name(void) {                                 \
    Ready();                                               \
    if (__builtin_expect(real.name == NULL, 0))            \
      *(void**)&real.name = FindLate(#name, NULL, CALLER); \
    UseThread(CALLER);                                     \
    return real.name ? real.name() : 0;                    \
  }

THREAD_NUMBER(omp_get_thread_num)
THREAD_NUMBER(omp_get_thread_num_)

/* Each thread has its own part of a tasks' reduction. */
WRAPPER void GOMP_task_reduction_remap(size_t count, size_t originals, void** variables) {
  REQUIRE(GOMP_task_reduction_remap);
  UseThread(CALLER);
  real.GOMP_task_reduction_remap(count, originals, variables);
}

WRAPPER void* __kmpc_task_reduction_get_th_data(int thread, void* group, void* variable) {
  REQUIRE(__kmpc_task_reduction_get_th_data);
  UseThread(CALLER);
  return real.__kmpc_task_reduction_get_th_data(thread, group, variable);
}
