// How many pages change hands at once. A fault that reaches the monitor costs ~35 us on kvm_pvm
// whatever it maps, and threads that share data by parts (rows, blocks, buckets) come for the
// neighbours of a page next, in whatever order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "shadow-pages/address.h"

namespace trapline {

// Of one thread, and one kind of change. Not thread-safe.
class Neighbourhood {
 public:
  static constexpr std::uint64_t kLargest = 64 * kPageSize;

  struct Pages {
    std::uint64_t start = 0, end = 0;
  };

  // The pages around `page` to be taken along with it, itself among them: the first time in a
  // neighbourhood 1, then 4, 16 and 64, aligned to their number; beside a neighbourhood that was
  // taken whole, 16 at once. Only new pages tell that more are wanted, not one that has to be
  // taken again because it went back to another thread.
  Pages Around(std::uint64_t page) {
    const std::uint64_t number = page / kLargest;
    while (blocks_.size() < kMostBlocks && IsOfOther(BlockOf(number), number)) Grow();
    Block& block = BlockOf(number);
    if (block.number != number) {
      const auto whole = [&](std::uint64_t other) {
        const Block& beside = BlockOf(other);
        return beside.number == other && beside.steps == kSteps;
      };
      block = {number, whole(number - 1) || whole(number + 1) ? kSteps - 1 : 0, {}};
    } else if (page < block.last.start || page >= block.last.end) {
      block.steps = std::min(block.steps + 1, kSteps);
    }
    const std::uint64_t size = kPageSize << (2 * block.steps);
    const std::uint64_t start = AlignDown(page, size);
    block.last = {start, start + size};
    return block.last;
  }

 private:
  static constexpr unsigned kSteps = 3;  // from 1 page to 64 by fours
  static constexpr std::uint64_t kNone = ~0ull;
  // As many as a thread may come back to. radix (bench/programs) fills 512 by turns, and with 128
  // blocks learned nothing of any: 16 to 28 s of processor time instead of 13 to 21.
  static constexpr std::size_t kFewestBlocks = 64, kMostBlocks = 1024;
  struct Block {
    std::uint64_t number = kNone;
    unsigned steps = 0;
    Pages last{};
  };

  Block& BlockOf(std::uint64_t number) { return blocks_[number % blocks_.size()]; }
  static bool IsOfOther(const Block& block, std::uint64_t number) {
    return block.number != kNone && block.number != number;
  }

  void Grow() {
    std::vector<Block> old(2 * blocks_.size());
    std::swap(old, blocks_);
    for (const Block& block : old) {
      if (block.number != kNone) BlockOf(block.number) = block;
    }
  }

  // Each at its number, modulo how many there are.
  std::vector<Block> blocks_ = std::vector<Block>(kFewestBlocks);
};

}  // namespace trapline
