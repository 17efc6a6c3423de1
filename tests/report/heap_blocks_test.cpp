// Blocks against a plain list of them.
#include "tools/heap_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace trapline {
namespace {

TEST(HeapBlocks, SayWhoAllocatedAndFreed) {
  HeapBlocks blocks;
  blocks.Allocate(0x7f12'3456'7ff0, 4096, 0x5555'1234'5678, 3);
  const auto live = blocks.Find(0x7f12'3456'8fef, 1);
  ASSERT_TRUE(live);
  EXPECT_EQ(live->start, 0x7f12'3456'7ff0u);
  EXPECT_EQ(live->size, 4096u);
  EXPECT_EQ(live->ip, 0x5555'1234'5678u);
  EXPECT_EQ(live->thread, 3u);
  EXPECT_FALSE(live->freed);
  EXPECT_EQ(blocks.Free(0x7f12'3456'7ff0, 0x5555'8765'4321, kMaxThreads - 1), 4096u);
  const auto freed = blocks.Find(0x7f12'3456'7ff0, 8);
  ASSERT_TRUE(freed);
  EXPECT_TRUE(freed->freed);
  EXPECT_EQ(freed->free_ip, 0x5555'8765'4321u);
  EXPECT_EQ(freed->freed_by, kMaxThreads - 1);
  EXPECT_FALSE(blocks.Find(0x7f12'3456'8ff0, 1));
  EXPECT_FALSE(blocks.Find(0x7f12'3456'7fef, 1));
}

// More instructions than there are numbers for: of later ones nothing is known but that they were.
TEST(HeapBlocks, OfTooManyWhoFreedNothingIsSaid) {
  constexpr std::uint64_t kMany = 1 << 19;
  HeapBlocks blocks;
  for (std::uint64_t ip = 1; ip <= kMany; ++ip) {
    blocks.Allocate(0x1000, 16, 7, 1);
    blocks.Free(0x1000, ip, 2);
  }
  const auto freed = blocks.Find(0x1000, 1);
  ASSERT_TRUE(freed);
  EXPECT_TRUE(freed->freed);
  EXPECT_EQ(freed->ip, 7u);
  EXPECT_EQ(freed->free_ip, 0u);
  blocks.Allocate(0x1000, 16, 7, 1);
  blocks.Free(0x1000, 5, 2);
  EXPECT_EQ(blocks.Find(0x1000, 1)->free_ip, 5u);
}

TEST(HeapBlocks, OfUnknownOnesNothingIsSaid) {
  HeapBlocks blocks;
  EXPECT_FALSE(blocks.Free(0x1000, 1, 1));
  blocks.Forget(0x1000);
  EXPECT_FALSE(blocks.Find(0, 1));
  blocks.Allocate(0x1000, 16, 1, 1);
  EXPECT_FALSE(blocks.Free(0x1001, 1, 1));
  blocks.Forget(0x1000);
  EXPECT_FALSE(blocks.Find(0x1000, 1));
}

// An allocator of the program's own, whose frees nobody hears of: what lies in the way is gone.
TEST(HeapBlocks, AgreeWithAList) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    HeapBlocks blocks;
    std::vector<HeapBlock> list;
    const std::uint64_t memory = random() % 2 == 0 ? 512 : 64 << 10;
    for (int i = 0; i < 200; ++i) {
      constexpr std::array<std::uint64_t, 8> kSizes = {0, 1, 16, 40, 4095, 4096, 4097, 20000};
      const std::uint64_t at = 4000 + random() % memory / 8 * 8;
      const std::uint64_t size = kSizes[random() % kSizes.size()];
      const auto known = std::find_if(list.begin(), list.end(),
                                      [&](const HeapBlock& block) { return block.start == at; });
      switch (random() % 4) {
        case 0:
          ASSERT_EQ(blocks.Free(at, 7, 8),
                    known != list.end() ? std::optional(known->size) : std::nullopt);
          if (known != list.end()) known->freed = true;
          break;
        case 1:
          blocks.Forget(at);
          if (known != list.end()) list.erase(known);
          break;
        default:
          std::erase_if(list, [&](const HeapBlock& block) {
            return block.start == at || (block.start < at + std::max<std::uint64_t>(size, 1) &&
                                         block.start + block.size > at);
          });
          blocks.Allocate(at, size, random() % 100, 1);
          list.push_back({.start = at, .size = size, .thread = 1});
      }
      for (int look = 0; look < 20; ++look) {
        const std::uint64_t address = 4000 - 100 + random() % (memory + 5000);
        const auto found = blocks.Find(address, 1);
        const auto wanted = std::find_if(list.begin(), list.end(), [&](const HeapBlock& block) {
          return address >= block.start && address < block.start + block.size;
        });
        ASSERT_EQ(found.has_value(), wanted != list.end()) << "round " << round << ", " << i;
        if (!found) continue;
        ASSERT_EQ(found->start, wanted->start);
        ASSERT_EQ(found->size, wanted->size);
        ASSERT_EQ(found->freed, wanted->freed);
      }
    }
  }
}

}  // namespace
}  // namespace trapline
