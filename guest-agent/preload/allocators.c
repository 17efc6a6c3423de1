/* Allocators' own functions (allocators.h). What they call of one another, or of malloc's family,
 * is reported once, with the program's call as its origin. */
#include "guest-agent/preload/allocators.h"

#include "guest-agent/preload/allocation.h"
#include "guest-agent/preload/runtime.h"

static inline int IsReported(uint64_t caller) {
  return caller - runtime.own_begin < runtime.own_size;
}

#define ALLOCATING(name, count, size, known)                           \
  WRAPPER void* name(BLOCK_PARAMETERS_##count) {                       \
    REQUIRE(name);                                                     \
    if (IsReported(CALLER)) return real.name(BLOCK_ARGUMENTS_##count); \
    struct Allocation outer = BeginAllocation(CALLER);                 \
    void* block = real.name(BLOCK_ARGUMENTS_##count);                  \
    EndAllocation(outer, (known) ? NULL : block, size, CALLER);        \
    return block;                                                      \
  }
#define ALLOCATE(name, count, size) ALLOCATING(name, count, runtime.agent ? size : 0, 0)

#define FREE(name, count)                       \
  WRAPPER void name(BLOCK_PARAMETERS_##count) { \
    REQUIRE(name);                              \
    void* block = (void*)a;                     \
    if (IsReported(CALLER)) {                   \
      real.name(BLOCK_ARGUMENTS_##count);       \
      return;                                   \
    }                                           \
    BEGIN_FREEING(block, SIZE_OF(block));       \
    real.name(BLOCK_ARGUMENTS_##count);         \
    END_FREEING;                                \
  }

/* As realloc: the block counts as given back even if it stays where it is. */
#define REALLOCATE(name, count, old, size)                                             \
  WRAPPER void* name(BLOCK_PARAMETERS_##count) {                                       \
    REQUIRE(name);                                                                     \
    if (IsReported(CALLER)) return real.name(BLOCK_ARGUMENTS_##count);                 \
    void* block = (void*)(old);                                                        \
    BEGIN_FREEING(block, SIZE_OF(block));                                              \
    struct Allocation outer = BeginAllocation(CALLER);                                 \
    void* moved = real.name(BLOCK_ARGUMENTS_##count);                                  \
    if (moved || (size) == 0)                                                          \
      EndAllocation(outer, moved, size, CALLER);                                       \
    else /* failed: the old block is still there */                                    \
      EndAllocation(outer, block, runtime.agent&& block ? SIZE_OF(block) : 0, CALLER); \
    END_FREEING;                                                                       \
    return moved;                                                                      \
  }

#define POSIX(name)                                                    \
  WRAPPER int name(void** result, size_t alignment, size_t size) {     \
    REQUIRE(name);                                                     \
    if (IsReported(CALLER)) return real.name(result, alignment, size); \
    struct Allocation outer = BeginAllocation(CALLER);                 \
    int error = real.name(result, alignment, size);                    \
    EndAllocation(outer, error == 0 ? *result : NULL, size, CALLER);   \
    return error;                                                      \
  }

#define SIZE_OF(block) (real.mi_usable_size ? real.mi_usable_size(block) : 0)
MIMALLOC_BLOCK_FUNCTIONS(ALLOCATE, FREE, REALLOCATE, POSIX)
#undef SIZE_OF
#define SIZE_OF(block) (real.sallocx ? real.sallocx(block, 0) : 0)
JEMALLOC_BLOCK_FUNCTIONS(ALLOCATE, FREE, REALLOCATE, POSIX)
#undef SIZE_OF
#define SIZE_OF(block) (real.je_sallocx ? real.je_sallocx(block, 0) : 0)
PREFIXED_JEMALLOC_BLOCK_FUNCTIONS(ALLOCATE, FREE, REALLOCATE, POSIX)
#undef SIZE_OF
#define SIZE_OF(block) (real.tc_malloc_size ? real.tc_malloc_size(block) : 0)
TCMALLOC_BLOCK_FUNCTIONS(ALLOCATE, FREE, REALLOCATE, POSIX)
#undef SIZE_OF
/* libgomp's are parts of malloc's, of which is told already. */
#define ALLOCATE_UNLESS_KNOWN(name, count, size) \
  ALLOCATING(name, count, size, current_allocation.reported)
OPENMP_BLOCK_FUNCTIONS(ALLOCATE_UNLESS_KNOWN, FREE, REALLOCATE, POSIX)
KMP_BLOCK_FUNCTIONS(ALLOCATE, FREE, REALLOCATE, POSIX)
