#include "hypervisor/page_bits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <random>

namespace trapline {
namespace {

// Against the plainest there is. Of the offsets more than half are multiples of 4.
template <class Bits>
void ExpectSameAsBitset() {
  std::mt19937 random(1);
  const auto below = [&](std::uint64_t end) {
    return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random);
  };
  const auto offset = [&] { return below(2) == 0 ? below(kPageSize) : below(kPageSize / 4) * 4; };
  for (int round = 0; round < 20; ++round) {
    Bits bits;
    std::bitset<kPageSize> model;
    for (int step = 0; step < 2000; ++step) {
      if (below(8) != 0) {
        const std::uint64_t at = offset();
        bits.set(at);
        model.set(at);
      } else {
        const std::uint64_t first = below(kPageSize + 1);
        const std::uint64_t end = std::min<std::uint64_t>(first + below(200), kPageSize);
        bits.Clear(first, end);
        for (std::uint64_t at = first; at < end; ++at) model.reset(at);
      }
      const std::uint64_t asked = offset();
      ASSERT_EQ(bits.test(asked), model.test(asked)) << asked;
    }
    for (std::uint64_t at = 0; at < kPageSize; ++at) ASSERT_EQ(bits.test(at), model.test(at)) << at;
    bits.Clear(0, kPageSize);
    for (std::uint64_t at = 0; at < kPageSize; ++at) ASSERT_FALSE(bits.test(at)) << at;
  }
}

TEST(PageBits, SameAsBitset) { ExpectSameAsBitset<PageBits>(); }
TEST(SparsePageBits, SameAsBitset) { ExpectSameAsBitset<SparsePageBits>(); }
TEST(WordStartBits, SameAsBitset) { ExpectSameAsBitset<WordStartBits>(); }

TEST(PageBits, VisitsWhatIsSetOfARange) {
  PageBits bits;
  for (const std::uint64_t at : {0, 5, 63, 64, 700, 4095}) bits.set(at);
  std::uint64_t sum = 0;
  bits.ForEach(5, 4095, [&](std::uint64_t at) { sum = 10'000 * sum + at; });
  EXPECT_EQ(sum, 5'0063'0064'0700u);
}

}  // namespace
}  // namespace trapline
