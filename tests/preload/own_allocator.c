/* In place of mimalloc, jemalloc and tcmalloc, which need not be installed: a library with the
 * functions of all of them. */
#include "tests/preload/own_allocator.h"

#include "guest-agent/preload/allocators.h"

static _Alignas(kOwnBlock) char memory[1 << 16];
static size_t used;

static void* Take(size_t size) {
  if (size > kMostBlock || used == sizeof memory) return NULL;
  used += kOwnBlock;
  return memory + used - kOwnBlock;
}

/* Parameters that a function does not need are not named as unused one by one. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define SIZE_OF(block) kOwnBlock
#define ALLOCATE(name, count, size) \
  void* name(BLOCK_PARAMETERS_##count) { return Take(size); }
#define FREE(name, count) \
  void name(BLOCK_PARAMETERS_##count) {}
#define REALLOCATE(name, count, block, size) \
  void* name(BLOCK_PARAMETERS_##count) { return Take(size); }
#define POSIX(name)                                        \
  int name(void** result, size_t alignment, size_t size) { \
    return (*result = Take(size)) ? 0 : 12; /* ENOMEM */   \
  }

MIMALLOC_BLOCK_FUNCTIONS(ALLOCATE, FREE, REALLOCATE, POSIX)
JEMALLOC_BLOCK_FUNCTIONS(ALLOCATE, FREE, REALLOCATE, POSIX)
PREFIXED_JEMALLOC_BLOCK_FUNCTIONS(ALLOCATE, FREE, REALLOCATE, POSIX)
TCMALLOC_BLOCK_FUNCTIONS(ALLOCATE, FREE, REALLOCATE, POSIX)

size_t mi_usable_size(const void* block) { return kOwnBlock; }
size_t sallocx(const void* block, int flags) { return kOwnBlock; }
size_t je_sallocx(const void* block, int flags) { return kOwnBlock; }
size_t tc_malloc_size(void* block) { return kOwnBlock; }
