// Memory for the cells of shadow memory, which is told of by 32 bits.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "detector/slab.h"

namespace trapline {

// Blocks of one or two groups of kGroup cells each, in few large slabs, as SlabPool has it: what
// is made at about the same time lies side by side, and memory goes back to the system only with
// the pool. Not thread-safe.
template <class Cell, std::size_t kGroup>
class CellPool {
 public:
  // 0: none. Below 2^31.
  using Reference = std::uint32_t;

  CellPool() = default;
  CellPool(const CellPool&) = delete;
  CellPool& operator=(const CellPool&) = delete;
  // Destroys no cell: blocks must have been deleted before.
  ~CellPool() = default;

  // The cells of a block, all of which are side by side.
  [[gnu::always_inline]] Cell* At(Reference block) const {
    return static_cast<Cell*>(slabs_[block >> kSlabBits].get()) + (block % kGroupsPerSlab) * kGroup;
  }

  // A block with so many groups, 1 or 2, of new cells. Throws std::bad_alloc.
  Reference New(unsigned groups = 1) {
    const Reference block = Allocate(groups);
    std::uninitialized_default_construct_n(At(block), groups * kGroup);
    return block;
  }

  // `groups` as it was made with.
  void Delete(Reference block, unsigned groups = 1) {
    std::destroy_n(At(block), groups * kGroup);
    groups_ -= groups;
    Free(block, groups);
  }

  // Bytes of all cells that there are.
  std::size_t bytes() const { return groups_ * kGroupBytes; }

 private:
  static constexpr std::size_t kGroupBytes = kGroup * sizeof(Cell);
  static_assert(kGroupBytes >= sizeof(Reference) && kGroupBytes <= kHugePage / 64);
  static constexpr unsigned kSlabBits = std::bit_width(kHugePage / kGroupBytes) - 1;
  static constexpr std::uint32_t kGroupsPerSlab = 1u << kSlabBits;
  static constexpr std::uint32_t kFirstGroups = 64;  // of the first slab

  Reference Allocate(unsigned groups) {
    Reference block = 0;
    if (free_[groups - 1] != 0) {
      block = TakeFree(groups);
    } else if (groups == 1 && free_[1] != 0) {
      block = TakeFree(2);
      Free(block + 1, 1);
    } else {
      if (end_ - fresh_ < groups) AddSlab();
      block = fresh_;
      fresh_ += groups;
    }
    groups_ += groups;
    return block;
  }

  Reference TakeFree(unsigned groups) {
    Reference& free = free_[groups - 1];
    const Reference next = *std::launder(reinterpret_cast<Reference*>(At(free)));
    if (next != 0) __builtin_prefetch(At(next), 1);  // which tells of the one behind it
    return std::exchange(free, next);
  }

  void Free(Reference block, unsigned groups) {
    new (static_cast<void*>(At(block))) Reference(free_[groups - 1]);
    free_[groups - 1] = block;
  }

  // Slabs grow, so that little is taken for little.
  void AddSlab() {
    const std::size_t number = slabs_.size();
    if (number << kSlabBits >= std::size_t{1} << 31) throw std::bad_alloc();
    const std::size_t bytes = slab_groups_ * kGroupBytes;
    slabs_.push_back(AllocateSlab(bytes == kHugePage ? kHugePage : kLine, bytes));
    if (end_ != fresh_) Free(fresh_, 1);
    fresh_ = static_cast<Reference>(number << kSlabBits);
    end_ = fresh_ + slab_groups_;
    if (fresh_ == 0) ++fresh_;
    slab_groups_ = std::min(2 * slab_groups_, kGroupsPerSlab);
  }

  static constexpr std::size_t kLine = 64;
  static_assert(kFirstGroups * kGroupBytes % kLine == 0 && alignof(Cell) <= kLine);

  std::size_t groups_ = 0;
  std::array<Reference, 2> free_{};           // blocks of one group, and of two
  Reference fresh_ = 0, end_ = 0;             // [fresh_, end_): never used
  std::uint32_t slab_groups_ = kFirstGroups;  // of the next slab
  std::vector<Slab> slabs_;
};

}  // namespace trapline
