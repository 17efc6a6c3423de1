// An allocator of jemalloc's shape, compiled together with the program: a cache for each thread,
// and blocks that go from one thread to the other by plain stores. For one thread that frees and
// one that allocates, beside what each does with blocks of its own.
#ifndef TRAPLINE_TESTS_RACES_ALLOCATORS_JE_ALLOCATOR_H_
#define TRAPLINE_TESTS_RACES_ALLOCATORS_JE_ALLOCATOR_H_

#include "race.h"

enum { kBlockSize = 64, kPoolBlocks = 1024, kBinBlocks = 8, kCachedBlocks = 4 };

static struct {
  char pool[kPoolBlocks][kBlockSize];
  int used;
  void* bin[kBinBlocks];  // null: empty
} arena;

static __thread struct {
  void* blocks[kCachedBlocks];
  int count;
} tcache;

void* je_arena_malloc_hard(void);
void* je_tcache_alloc_small_hard(void);
int je_arena_dalloc_small(void* block);
void je_tcache_bin_flush_small(void);
void* je_malloc(void);
void je_free(void* block);

// No line of the source tells these from other accesses.
#define LOAD(from, to) __asm__ volatile("mov %1, %0" : "=r"(to) : "m"(from) : "memory")
#define STORE(to, from) __asm__ volatile("mov %1, %0" : "=m"(to) : "r"(from) : "memory")

__attribute__((noinline)) void* je_arena_malloc_hard(void) {
  const int number = __atomic_fetch_add(&arena.used, 1, __ATOMIC_RELAXED);
  Check(number < kPoolBlocks);
  return arena.pool[number];
}

__attribute__((noinline)) void* je_tcache_alloc_small_hard(void) {
  for (int i = 0; i < kBinBlocks; ++i) {
    void* block;
    LOAD(arena.bin[i], block);
    if (block == NULL) continue;
    void* const none = NULL;
    STORE(arena.bin[i], none);
    return block;
  }
  return je_arena_malloc_hard();
}

__attribute__((noinline)) int je_arena_dalloc_small(void* block) {
  for (int i = 0; i < kBinBlocks; ++i) {
    void* there;
    LOAD(arena.bin[i], there);
    if (there != NULL) continue;
    *(void**)block = NULL;
    STORE(arena.bin[i], block);
    return 1;
  }
  return 0;
}

__attribute__((noinline)) void je_tcache_bin_flush_small(void) {
  while (tcache.count > 0 && je_arena_dalloc_small(tcache.blocks[tcache.count - 1])) --tcache.count;
}

__attribute__((noinline)) void* je_malloc(void) {
  if (tcache.count > 0) return tcache.blocks[--tcache.count];
  return je_tcache_alloc_small_hard();
}

// A block that finds no room is lost.
__attribute__((noinline)) void je_free(void* block) {
  if (tcache.count == kCachedBlocks) je_tcache_bin_flush_small();
  if (tcache.count < kCachedBlocks) tcache.blocks[tcache.count++] = block;
}

#endif  // TRAPLINE_TESTS_RACES_ALLOCATORS_JE_ALLOCATOR_H_
