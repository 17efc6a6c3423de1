/* Allocations made on behalf of the program by functions that call malloc in turn: operator new,
 * strdup, ... The block is reported once, with the program's call as its origin. */
#ifndef TRAPLINE_GUEST_AGENT_PRELOAD_ALLOCATION_H_
#define TRAPLINE_GUEST_AGENT_PRELOAD_ALLOCATION_H_

#include "guest-agent/preload/runtime.h"

struct Allocation {
  uint64_t ip;          /* of the outermost such call that is under way; 0: none */
  const void* reported; /* the block last reported as allocated */
  const void* freeing;  /* the block being freed, already reported as such */
};
INTERNAL extern __thread struct Allocation current_allocation;

/* The outermost call counts. */
static inline struct Allocation BeginAllocation(uint64_t ip) {
  struct Allocation outer = current_allocation;
  if (!outer.ip) current_allocation.ip = ip;
  current_allocation.reported = NULL;
  return outer;
}

static inline void EndAllocation(struct Allocation outer, const void* block, size_t size,
                                 uint64_t ip) {
  if (block && current_allocation.reported != block) {
    current_allocation.reported = block;
    Event(TRAPLINE_ALLOCATE, block, size, outer.ip ? outer.ip : ip);
  }
  current_allocation.ip = 0;
}

/* In a wrapper, around what gives `block` back by other functions that do so: reported once,
 * before. `size` is asked for only then, and if accesses count. */
#define BEGIN_FREEING(block, size)                                               \
  const void* const freeing = current_allocation.freeing;                        \
  if (runtime.agent && (block) && (block) != freeing)                            \
    Event(TRAPLINE_FREE, block, runtime.agent->tracking() ? (size) : 0, CALLER); \
  current_allocation.freeing = (block)
#define END_FREEING current_allocation.freeing = freeing

#endif
