// Memory for many small blocks of a few sizes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "detector/slab.h"

namespace trapline {

// Blocks of a power of two of bytes, aligned to their size or a cache line, whichever is less, in
// few large slabs: as SlabPool has it. A block leads to its pool, so that who has one can free it
// and get others from there. Not thread-safe.
class BlockPool {
 public:
  BlockPool() = default;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  // What was not freed is void.
  ~BlockPool() = default;

  // `bytes`: a power of two of at least 8. Throws std::bad_alloc.
  void* Allocate(std::size_t bytes) {
    if (bytes > kLargest) {
      Slab slab = AllocateSlab(kChunk, RoundUp(kLine + bytes, kChunk));
      return reinterpret_cast<std::byte*>(new (slab.release()) Chunk{this}) + kLine;
    }
    Block*& free = free_[std::countr_zero(bytes)];
    if (free != nullptr) {
      Block* const block = free;
      free = block->next;
      if (free != nullptr) __builtin_prefetch(free, 1);  // which leads to the one behind it
      return block;
    }
    fresh_ = RoundUp(fresh_, std::min(bytes, kLine));
    if (fresh_ + bytes > end_) AddChunk();
    void* const block = reinterpret_cast<void*>(fresh_);
    fresh_ += bytes;
    return block;
  }

  // From the pool that `block` is of.
  static void* AllocateBeside(void* block, std::size_t bytes) {
    return ChunkOf(block)->pool->Allocate(bytes);
  }
  // `bytes` as it was allocated with.
  static void Free(void* block, std::size_t bytes) {
    if (bytes > kLargest) {
      FreeSlab{}(ChunkOf(block));
      return;
    }
    Block*& free = ChunkOf(block)->pool->free_[std::countr_zero(bytes)];
    free = new (block) Block{free};
  }

 private:
  struct Block {
    Block* next;  // of the free ones of this size
  };
  struct Chunk {
    BlockPool* pool;
  };

  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kChunk = 64 << 10;
  static constexpr std::size_t kLargest = kChunk / 8;

  static std::uintptr_t RoundUp(std::uintptr_t at, std::size_t to) {
    return (at + to - 1) & ~(to - 1);
  }
  static Chunk* ChunkOf(void* block) {
    return reinterpret_cast<Chunk*>(reinterpret_cast<std::uintptr_t>(block) & ~(kChunk - 1));
  }

  // The first ones one by one, so that little is taken for little.
  void AddChunk() {
    if (slab_fresh_ == slab_end_) {
      const bool large = slabs_.size() >= kHugePage / kChunk;
      const std::size_t bytes = large ? kHugePage : kChunk;
      slabs_.push_back(AllocateSlab(bytes, bytes));
      slab_fresh_ = static_cast<std::byte*>(slabs_.back().get());
      slab_end_ = slab_fresh_ + bytes;
    }
    auto* const chunk = new (slab_fresh_) Chunk{this};
    slab_fresh_ += kChunk;
    fresh_ = reinterpret_cast<std::uintptr_t>(chunk) + kLine;
    end_ = reinterpret_cast<std::uintptr_t>(chunk) + kChunk;
  }

  std::array<Block*, std::countr_zero(kLargest) + 1> free_{};
  std::uintptr_t fresh_ = 0;  // [fresh_, end_): never used, in the current chunk
  std::uintptr_t end_ = 0;
  std::byte* slab_fresh_ = nullptr;  // likewise of chunks in the last slab
  std::byte* slab_end_ = nullptr;
  std::vector<Slab> slabs_;
};

}  // namespace trapline
