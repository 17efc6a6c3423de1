/* The allocator: malloc and its family, operator new and delete. A block is reported as freed
 * before it is, and as allocated after it is, so that nobody else's block is ever taken for it.
 *
 * libc's own functions that allocate for the program (strdup, getline, ...) call malloc through
 * its symbol, hence through here. A program that defines malloc itself never gets here: its
 * definition comes first. */
#include "guest-agent/preload/allocation.h"

#include <errno.h>
#include <string.h>

#include "guest-agent/preload/runtime.h"

/* -- What the loader allocates while the real functions are being looked up: a few thousand bytes,
 * never given back. None of it comes from the program's heap, whose first blocks are where they
 * would be without this library, and zero. -- */

enum { kEarlyBytes = 65536, kEarlyAlignment = 16 };
static _Alignas(kEarlyAlignment) char early_memory[kEarlyBytes];
static size_t early_used;

static void* EarlyAllocate(size_t size) {
  size_t rounded = (size + kEarlyAlignment - 1) & ~(size_t)(kEarlyAlignment - 1);
  if (rounded < size || rounded > kEarlyBytes - early_used) {
    errno = ENOMEM;
    return NULL;
  }
  void* block = early_memory + early_used;
  early_used += rounded;
  return block;
}

static int IsEarly(const void* block) {
  return (const char*)block >= early_memory && (const char*)block < early_memory + kEarlyBytes;
}

/* -- Reports -- */

__thread struct Allocation current_allocation;

/* In allocation functions, which must work before Ready. */
#define CAN_REPORT (runtime.agent != NULL)

static inline void ReportAllocated(const void* block, size_t size, uint64_t ip) {
  if (!CAN_REPORT) return;
  if (!block) {
    current_allocation.ip = 0; /* operator new may throw, and not come to its end */
    return;
  }
  current_allocation.reported = block;
  Event(TRAPLINE_ALLOCATE, block, size, current_allocation.ip ? current_allocation.ip : ip);
}

/* The usable size of a block of glibc's, 0 for what cannot be one: malloc_usable_size may crash on
 * what free refuses with a message. Reads what free reads, the word before the block: its size with
 * the header, and in the low bits whether it is a mapping of its own. */
static size_t UsableSizeInLibc(const void* block) {
  enum { kMapped = 2, kFlags = 7, kAlignment = 16, kSmallest = 32 };
  static const uint64_t kLargestUnmapped = (uint64_t)1 << 36;
  if ((uint64_t)block % kAlignment != 0) return 0;
  uint64_t word = ((const uint64_t*)block)[-1];
  uint64_t size = word & ~(uint64_t)kFlags;
  if (size < kSmallest || (!(word & kMapped) && size > kLargestUnmapped)) return 0;
  return size - (word & kMapped ? 2 * sizeof(word) : sizeof(word));
}

static size_t UsableSize(void* block) {
  return runtime.allocator_is_libc ? UsableSizeInLibc(block) : real.malloc_usable_size(block);
}

/* The same for who frees from `ip`, 0 if it does not matter, while there is one thread, or must not
 * be asked: LeakSanitizer must not before it is ready, though it frees. A thread that ends lets the
 * loader free what other threads' stacks had, after its own destructors. jemalloc's free can be
 * called then; but asked for a size by a thread that has never allocated, it enters the thread into
 * a list that only a destructor would take it out of, and the next thread to use the list crashes.
 */
static size_t SizeOfFreed(void* block, uint64_t ip) {
  int by_loader = ip - runtime.loader_begin < runtime.loader_size;
  if (!runtime.agent->tracking() || (by_loader && !runtime.allocator_is_libc)) return 0;
  return UsableSize(block);
}

static inline void ReportFreed(void* block, uint64_t ip) {
  if (!CAN_REPORT || !block || block == current_allocation.freeing) return;
  Event(TRAPLINE_FREE, block, SizeOfFreed(block, ip), ip);
}

/* -- malloc and its family -- */

WRAPPER void* malloc(size_t size) {
  if (!Ready()) return EarlyAllocate(size);
  void* block = real.malloc(size);
  ReportAllocated(block, size, CALLER);
  return block;
}

WRAPPER void* calloc(size_t count, size_t size) {
  if (!Ready()) {
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : EarlyAllocate(bytes);
  }
  void* block = real.calloc(count, size);
  ReportAllocated(block, count * size, CALLER);
  return block;
}

/* What is null is not handed on: while functions are looked up the loader frees its message, which
 * may be none, and oneTBB's free looks functions up itself when it is called first. */
WRAPPER void free(void* block) {
  if (!block || IsEarly(block) || (!Ready() && !real.free)) return;
  ReportFreed(block, CALLER);
  real.free(block);
}

static void* MoveFromEarly(const char* block, size_t size) {
  char* moved = Ready() ? real.malloc(size) : EarlyAllocate(size);
  size_t known = (size_t)(early_memory + early_used - block);
  for (size_t i = 0; moved && i < size && i < known; ++i) moved[i] = block[i];
  return moved;
}

static inline void* Reallocate(void* block, size_t size, uint64_t ip) {
  if (IsEarly(block)) return MoveFromEarly(block, size);
  if (!Ready() && (!block || !real.realloc)) return EarlyAllocate(size);
  if (!CAN_REPORT || !block) {
    void* fresh = real.realloc(block, size);
    ReportAllocated(fresh, size, ip);
    return fresh;
  }
  /* The block counts as freed even if it stays where it is: another thread may have it the
   * moment the real function gives it back. */
  size_t old_size = runtime.agent->tracking() ? UsableSize(block) : 0;
  Event(TRAPLINE_FREE, block, old_size, ip);
  void* moved = real.realloc(block, size);
  if (moved)
    ReportAllocated(moved, size, ip);
  else if (size != 0) /* failed: the old block is still there */
    ReportAllocated(block, UsableSize(block), ip);
  return moved;
}

WRAPPER void* realloc(void* block, size_t size) { return Reallocate(block, size, CALLER); }

WRAPPER void* reallocarray(void* block, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  return Reallocate(block, bytes, CALLER);
}

WRAPPER size_t malloc_usable_size(void* block) {
  if (IsEarly(block)) return 0;
  Ready();
  return real.malloc_usable_size(block);
}

#define ALIGNED(size, allocate)         \
  Ready();                              \
  void* block = (allocate);             \
  ReportAllocated(block, size, CALLER); \
  return block

WRAPPER void* memalign(size_t alignment, size_t size) {
  ALIGNED(size, real.memalign(alignment, size));
}

WRAPPER void* aligned_alloc(size_t alignment, size_t size) {
  ALIGNED(size, real.aligned_alloc(alignment, size));
}

WRAPPER void* valloc(size_t size) { ALIGNED(size, real.valloc(size)); }

WRAPPER void* pvalloc(size_t size) { ALIGNED(size, real.pvalloc(size)); }

WRAPPER int posix_memalign(void** block, size_t alignment, size_t size) {
  Ready();
  int result = real.posix_memalign(block, alignment, size);
  if (result == 0)
    ReportAllocated(*block, size, CALLER);
  else
    ReportAllocated(NULL, 0, CALLER);
  return result;
}

/* -- operator new and delete. The C++ library's own call malloc and free, another allocator's do
 * not: either way the block is reported once, as allocated by the caller of the operator. -- */

#define NEW(size, name, ...)                         \
  REQUIRE(name);                                     \
  struct Allocation outer = BeginAllocation(CALLER); \
  void* block = real.name(__VA_ARGS__);              \
  EndAllocation(outer, block, size, CALLER);         \
  return block

#define DELETE(block, name, ...)                    \
  REQUIRE(name);                                    \
  BEGIN_FREEING(block, SizeOfFreed(block, CALLER)); \
  real.name(__VA_ARGS__);                           \
  END_FREEING

WRAPPER void* _Znwm(size_t size) { NEW(size, _Znwm, size); }

WRAPPER void* _Znam(size_t size) { NEW(size, _Znam, size); }

WRAPPER void* _ZnwmRKSt9nothrow_t(size_t size, const void* nothrow) {
  NEW(size, _ZnwmRKSt9nothrow_t, size, nothrow);
}

WRAPPER void* _ZnamRKSt9nothrow_t(size_t size, const void* nothrow) {
  NEW(size, _ZnamRKSt9nothrow_t, size, nothrow);
}

WRAPPER void* _ZnwmSt11align_val_t(size_t size, size_t alignment) {
  NEW(size, _ZnwmSt11align_val_t, size, alignment);
}

WRAPPER void* _ZnamSt11align_val_t(size_t size, size_t alignment) {
  NEW(size, _ZnamSt11align_val_t, size, alignment);
}

WRAPPER void* _ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment,
                                                 const void* nothrow) {
  NEW(size, _ZnwmSt11align_val_tRKSt9nothrow_t, size, alignment, nothrow);
}

WRAPPER void* _ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment,
                                                 const void* nothrow) {
  NEW(size, _ZnamSt11align_val_tRKSt9nothrow_t, size, alignment, nothrow);
}

WRAPPER void _ZdlPv(void* block) { DELETE(block, _ZdlPv, block); }

WRAPPER void _ZdaPv(void* block) { DELETE(block, _ZdaPv, block); }

WRAPPER void _ZdlPvm(void* block, size_t size) { DELETE(block, _ZdlPvm, block, size); }

WRAPPER void _ZdaPvm(void* block, size_t size) { DELETE(block, _ZdaPvm, block, size); }

WRAPPER void _ZdlPvRKSt9nothrow_t(void* block, const void* nothrow) {
  DELETE(block, _ZdlPvRKSt9nothrow_t, block, nothrow);
}

WRAPPER void _ZdaPvRKSt9nothrow_t(void* block, const void* nothrow) {
  DELETE(block, _ZdaPvRKSt9nothrow_t, block, nothrow);
}

WRAPPER void _ZdlPvSt11align_val_t(void* block, size_t alignment) {
  DELETE(block, _ZdlPvSt11align_val_t, block, alignment);
}

WRAPPER void _ZdaPvSt11align_val_t(void* block, size_t alignment) {
  DELETE(block, _ZdaPvSt11align_val_t, block, alignment);
}

WRAPPER void _ZdlPvmSt11align_val_t(void* block, size_t size, size_t alignment) {
  DELETE(block, _ZdlPvmSt11align_val_t, block, size, alignment);
}

WRAPPER void _ZdaPvmSt11align_val_t(void* block, size_t size, size_t alignment) {
  DELETE(block, _ZdaPvmSt11align_val_t, block, size, alignment);
}

WRAPPER void _ZdlPvSt11align_val_tRKSt9nothrow_t(void* block, size_t alignment,
                                                 const void* nothrow) {
  DELETE(block, _ZdlPvSt11align_val_tRKSt9nothrow_t, block, alignment, nothrow);
}

WRAPPER void _ZdaPvSt11align_val_tRKSt9nothrow_t(void* block, size_t alignment,
                                                 const void* nothrow) {
  DELETE(block, _ZdaPvSt11align_val_tRKSt9nothrow_t, block, alignment, nothrow);
}
