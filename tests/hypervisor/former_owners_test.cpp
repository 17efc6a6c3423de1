#include "hypervisor/former_owners.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <utility>

#include "hypervisor/observer.h"

namespace trapline {
namespace {

using Losses = std::set<std::pair<ThreadId, std::uint64_t>>;

Losses In(const FormerOwners& former, std::uint64_t start, std::uint64_t end) {
  Losses losses;
  former.ForEach(start, end,
                 [&](ThreadId owner, std::uint64_t key) { losses.emplace(owner, key); });
  return losses;
}

TEST(FormerOwners, KnowsWhoLostWhat) {
  FormerOwners former;
  EXPECT_TRUE(former.empty());
  former.Add(1, 11, 0x2000, 0x4000);
  former.Add(2, 22, 0x3000, 0x6000);
  EXPECT_FALSE(former.empty());
  EXPECT_EQ(In(former, 0x1000, 0x2000), Losses{});
  EXPECT_EQ(In(former, 0x2000, 0x2008), (Losses{{1, 11}}));
  EXPECT_EQ(In(former, 0x3ff8, 0x4000), (Losses{{1, 11}, {2, 22}}));
  EXPECT_EQ(In(former, 0x2ff8, 0x3008), (Losses{{1, 11}, {2, 22}}));
  EXPECT_EQ(In(former, 0x5000, 0x9000), (Losses{{2, 22}}));
  EXPECT_EQ(In(former, 0x6000, 0x9000), Losses{});
  EXPECT_TRUE(former.Has(0x3000, 1));
  EXPECT_FALSE(former.Has(0x4000, 1));
  EXPECT_FALSE(former.Has(0x1fff, 1));
}

TEST(FormerOwners, ALaterLossCoversEarlierOnes) {
  FormerOwners former;
  former.Add(1, 11, 0x2000, 0x6000);
  former.Add(1, 12, 0x1000, 0x3000);
  EXPECT_EQ(In(former, 0x1000, 0x3000), (Losses{{1, 12}}));
  EXPECT_EQ(In(former, 0x3000, 0x6000), (Losses{{1, 11}}));
  former.Add(1, 13, 0x0000, 0x9000);  // gaps before, and behind
  EXPECT_EQ(In(former, 0x0000, 0x9000), (Losses{{1, 13}}));
  EXPECT_TRUE(former.Has(0x0000, 1));
  EXPECT_TRUE(former.Has(0x8fff, 1));
}

TEST(FormerOwners, FreshMemoryHasNone) {
  FormerOwners former;
  former.Add(1, 11, 0x1000, 0x9000);
  former.Forget(0x3000, 0x4000);
  EXPECT_TRUE(former.Has(0x2fff, 1));
  EXPECT_FALSE(former.Has(0x3000, 1));
  EXPECT_TRUE(former.Has(0x4000, 1));
  former.Clear();
  EXPECT_TRUE(former.empty());
}

TEST(FormerOwners, MoveWithTheirPages) {
  FormerOwners former;
  former.Add(1, 11, 0x1000, 0x4000);
  former.Add(2, 22, 0x10000, 0x20000);
  former.Move(0x2000, 0x12000, 0x1000);
  EXPECT_TRUE(former.Has(0x1fff, 1));
  EXPECT_EQ(In(former, 0x2000, 0x3000), Losses{});
  EXPECT_TRUE(former.Has(0x3000, 1));
  EXPECT_TRUE(former.Has(0x11fff, 2));
  EXPECT_EQ(In(former, 0x12000, 0x13000), (Losses{{1, 11}}));
  EXPECT_TRUE(former.Has(0x13000, 2));
  // Nothing was there.
  former.Move(0x40000, 0x10000, 0x10000);
  EXPECT_EQ(In(former, 0x10000, 0x20000), Losses{});
}

TEST(FormerOwners, AKeyIsLearntOnceUntilItStandsForMore) {
  FormerOwners former;
  FormerOwners::Known one, other;
  const std::uint64_t key = former.NextKey(1);
  const std::uint64_t later = former.NextKey(1);
  ASSERT_NE(key, later);
  EXPECT_TRUE(former.Learn(one, key));
  EXPECT_FALSE(former.Learn(one, key));
  EXPECT_TRUE(former.Learn(other, key));
  EXPECT_TRUE(former.Learn(one, later));
  while (former.NextKey(1) != key) {
  }
  EXPECT_TRUE(former.Learn(one, key));
  EXPECT_FALSE(former.Learn(one, key));
}

TEST(FormerOwners, KeysAreFew) {
  FormerOwners former;
  std::set<std::uint64_t> keys;
  for (ThreadId owner = 0; owner < 1000; ++owner) {
    const std::uint64_t key = former.NextKey(owner);
    EXPECT_EQ(key & kLossKeys, kLossKeys);
    keys.insert(key);
  }
  EXPECT_LE(keys.size(), 1024u);
  EXPECT_NE(former.NextKey(1), former.NextKey(1));
}

}  // namespace
}  // namespace trapline
