// Ranges against a set of single addresses.
#include "tools/address_ranges.h"

#include <gtest/gtest.h>

#include <bitset>
#include <cstdint>
#include <random>

namespace trapline {
namespace {

TEST(AddressRanges, NeighboursBecomeOne) {
  AddressRanges ranges;
  EXPECT_TRUE(ranges.empty());
  ranges.Add(10, 20);
  ranges.Add(20, 30);
  EXPECT_TRUE(ranges.Contains(15, 10));
  EXPECT_FALSE(ranges.Contains(15, 16));
  EXPECT_FALSE(ranges.Contains(9, 2));
}

TEST(AddressRanges, EmptyOnesAreIgnored) {
  AddressRanges ranges;
  ranges.Add(10, 10);
  ranges.Add(20, 10);
  EXPECT_TRUE(ranges.empty());
}

TEST(AddressRanges, RemovingFromTheMiddleLeavesBothEnds) {
  AddressRanges ranges;
  ranges.Add(10, 40);
  ranges.Remove(20, 30);
  EXPECT_TRUE(ranges.Contains(10, 10));
  EXPECT_TRUE(ranges.Contains(30, 10));
  EXPECT_FALSE(ranges.Contains(19, 2));
  EXPECT_FALSE(ranges.Contains(29, 2));
}

TEST(AddressRanges, AgreeWithASetOfAddresses) {
  constexpr std::uint64_t kEnd = 64;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    AddressRanges ranges;
    std::bitset<kEnd> contained;
    for (int step = 0; step < 50; ++step) {
      const std::uint64_t start = random() % kEnd, end = start + random() % (kEnd - start + 1);
      const bool adds = random() % 2 == 0;
      adds ? ranges.Add(start, end) : ranges.Remove(start, end);
      for (std::uint64_t at = start; at < end; ++at) contained[at] = adds;
      for (std::uint64_t from = 0; from < kEnd; ++from) {
        bool all = true;
        for (std::uint64_t size = 1; from + size <= kEnd; ++size) {
          all = all && contained[from + size - 1];
          ASSERT_EQ(ranges.Contains(from, size), all) << "seed " << seed << ", step " << step;
        }
      }
    }
  }
}

}  // namespace
}  // namespace trapline
