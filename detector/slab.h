// Memory in large blocks.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace trapline {

struct FreeSlab {
  void operator()(void* memory) const { std::free(memory); }
};
using Slab = std::unique_ptr<void, FreeSlab>;

constexpr std::size_t kHugePage = 2 << 20;

// `bytes` and `alignment`: as std::aligned_alloc wants them. On a huge page, where the system gives
// one, if it is as large as that. Throws std::bad_alloc.
inline Slab AllocateSlab(std::size_t alignment, std::size_t bytes) {
  Slab slab(std::aligned_alloc(alignment, bytes));
  if (slab == nullptr) throw std::bad_alloc();
  if (bytes >= kHugePage) madvise(slab.get(), bytes, MADV_HUGEPAGE);  // a wish
  return slab;
}

}  // namespace trapline
