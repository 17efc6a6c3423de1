#include "hypervisor/unseen_loads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "guest-agent/sector_use.h"

namespace trapline {
namespace {

constexpr MemoryAccess Load(std::uint64_t address) { return {address, 8, true, false, false}; }

bool IsWatched(const UnseenLoads& loads, std::uint64_t address, std::uint64_t size) {
  return std::ranges::any_of(loads.watched(), [&](const UnseenLoads::Word& word) {
    return word.address <= address && address + size <= word.address + word.size;
  });
}

TEST(UnseenLoads, PlainLoadsMayBeRepeatedUntilTheEpochEnds) {
  UnseenLoads loads;
  loads.Note(Load(0x1000), EventKind::kRead);
  loads.NoteMayPoll();
  EXPECT_TRUE(loads.MayReadAgain(0x1000));
  EXPECT_FALSE(loads.MayReadAgain(0x1008));
  EXPECT_TRUE(loads.watched().empty());
  EXPECT_TRUE(loads.may_poll());
  loads.EndEpoch(7);
  EXPECT_FALSE(loads.MayReadAgain(0x1000));
  EXPECT_FALSE(loads.may_poll());
  EXPECT_EQ(loads.epoch_start(), 7u);
}

// However many there are, none is forgotten, and few others are taken for them.
TEST(UnseenLoads, ManyAreRemembered) {
  constexpr std::uint64_t kReads = 65'000, kOthers = 10'000, kMost = kOthers / 20;
  UnseenLoads loads;
  for (std::uint64_t i = 0; i < kReads; ++i) loads.Note(Load(0x1000 + 8 * i), EventKind::kRead);
  for (std::uint64_t i = 0; i < kReads; i += 1000) EXPECT_TRUE(loads.MayReadAgain(0x1000 + 8 * i));
  EXPECT_TRUE(loads.MayReadAgain(0x1000 + 8 * (kReads - 1)));
  std::uint64_t mistaken = 0;
  for (std::uint64_t i = 0; i < kOthers; ++i)
    mistaken += loads.MayReadAgain(0x1000 + 8 * (kReads + i)) ? 1 : 0;
  EXPECT_LT(mistaken, kMost);
  loads.EndEpoch(0);
  EXPECT_FALSE(loads.MayReadAgain(0x1000 + 8 * (kReads - 1)));
}

TEST(UnseenLoads, WhatIsWatchedIsTakenInOnceForEachRelease) {
  UnseenLoads loads;
  EXPECT_FALSE(loads.IsBehind(1));
  loads.Note(Load(0x1000), EventKind::kAtomicRead);
  EXPECT_TRUE(loads.IsBehind(1));
  loads.SetTakenIn(1);
  EXPECT_FALSE(loads.IsBehind(1));
  EXPECT_TRUE(loads.IsBehind(2));
  loads.SetTakenIn(2);
  loads.Watch({0x1000, 8});  // not a new one
  EXPECT_FALSE(loads.IsBehind(2));
  loads.Watch({0x2000, 8});
  EXPECT_TRUE(loads.IsBehind(2));
  loads.ForgetWatched();
  EXPECT_FALSE(loads.IsBehind(3));
}

TEST(UnseenLoads, OfManyWordsTheOldestGoes) {
  UnseenLoads loads;
  for (std::uint64_t i = 0; i <= 256; ++i) loads.Watch({0x1000 + 8 * i, 8});
  EXPECT_EQ(loads.watched().size(), 256u);
  EXPECT_FALSE(IsWatched(loads, 0x1000, 8));
  EXPECT_TRUE(IsWatched(loads, 0x1000 + 8 * 256, 8));
}

TEST(UnseenLoads, NoSectorIsMissed) {
  UnseenLoads loads;
  const auto address = [](std::uint64_t i) { return 0x100000 + 2 * i * agent::kSectorSize; };
  for (std::uint64_t i = 0; i < 300; ++i) loads.Watch({address(i), agent::kSectorSize});
  EXPECT_EQ(loads.watched().size(), 256u);
  for (std::uint64_t i = 0; i < 300; ++i)
    EXPECT_TRUE(IsWatched(loads, address(i), agent::kSectorSize)) << i;
}

}  // namespace
}  // namespace trapline
