#include "hypervisor/unseen_loads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "guest-agent/sector_use.h"

namespace trapline {
namespace {

constexpr MemoryAccess Load(std::uint64_t address) { return {address, 8, true, false, false}; }

using Words = std::vector<UnseenLoads::Word>;

// What the thread takes in.
Words TakenIn(UnseenLoads& loads, const ReleaseLog& releases) {
  Words words;
  loads.TakeIn(releases, [&](const UnseenLoads::Word& word) { words.push_back(word); });
  return words;
}

bool Contains(const Words& words, std::uint64_t address, std::uint64_t size) {
  return std::ranges::any_of(words, [&](const UnseenLoads::Word& word) {
    return word.address <= address && address + size <= word.address + word.size;
  });
}

TEST(UnseenLoads, PlainLoadsMayBeRepeatedUntilTheEpochEnds) {
  UnseenLoads loads;
  loads.Note(Load(0x1000), EventKind::kRead);
  loads.NoteMayPoll();
  EXPECT_TRUE(loads.MayReadAgain(0x1000));
  EXPECT_FALSE(loads.MayReadAgain(0x1008));
  EXPECT_TRUE(TakenIn(loads, {}).empty());
  EXPECT_TRUE(loads.may_poll());
  loads.EndEpoch(7);
  EXPECT_FALSE(loads.MayReadAgain(0x1000));
  EXPECT_FALSE(loads.may_poll());
  EXPECT_EQ(loads.epoch_start(), 7u);
}

TEST(UnseenLoads, EightBytesAreTheirSecondHalfToo) {
  UnseenLoads loads;
  const auto load = [&](std::uint64_t address, std::uint32_t size) {
    MemoryAccess access = Load(address);
    access.size = size;
    loads.Note(access, EventKind::kRead);
  };
  load(0x1000, 8);
  load(0x2000, 4);
  EXPECT_TRUE(loads.MayReadAgain(0x1000));
  EXPECT_TRUE(loads.MayReadAgain(0x1004));
  EXPECT_TRUE(loads.MayReadAgain(0x2000));
  EXPECT_FALSE(loads.MayReadAgain(0x2004));
  EXPECT_FALSE(loads.MayReadAgain(0x0ffc));
}

// However many there are, none is forgotten, and few others are taken for them, whether they lie
// side by side or apart.
TEST(UnseenLoads, ManyAreRemembered) {
  constexpr std::uint64_t kReads = 65'000, kOthers = 10'000, kMost = kOthers / 50;
  for (const std::uint64_t distance : {4, 8, 64, 256, 4096, 12'344}) {
    UnseenLoads loads;
    const auto address = [&](std::uint64_t i) { return 0x1000 + distance * i; };
    for (std::uint64_t i = 0; i < kReads; ++i) loads.Note(Load(address(i)), EventKind::kRead);
    for (std::uint64_t i = 0; i < kReads; i += 1000) EXPECT_TRUE(loads.MayReadAgain(address(i)));
    EXPECT_TRUE(loads.MayReadAgain(address(kReads - 1)));
    std::uint64_t mistaken = 0;
    for (std::uint64_t i = 0; i < kOthers; ++i)
      mistaken += loads.MayReadAgain(address(kReads + i)) ? 1 : 0;
    EXPECT_LT(mistaken, kMost) << distance;
    loads.EndEpoch(0);
    EXPECT_FALSE(loads.MayReadAgain(address(kReads - 1)));
  }
}

TEST(UnseenLoads, WhatIsWatchedIsTakenInOnceForEachRelease) {
  UnseenLoads loads;
  ReleaseLog releases;
  EXPECT_FALSE(loads.IsBehind(releases));
  loads.Note(Load(0x1000), EventKind::kAtomicRead);
  EXPECT_TRUE(loads.IsBehind(releases));
  EXPECT_EQ(TakenIn(loads, releases), (Words{{0x1000, 8}}));
  EXPECT_FALSE(loads.IsBehind(releases));
  releases.Add(0x1004, 1);
  EXPECT_TRUE(loads.IsBehind(releases));
  EXPECT_EQ(TakenIn(loads, releases), (Words{{0x1000, 8}}));
  loads.Watch({0x1000, 8});  // not a new one
  EXPECT_FALSE(loads.IsBehind(releases));
  loads.Watch({0x2000, 8});
  EXPECT_TRUE(loads.IsBehind(releases));
  loads.ForgetWatched();
  EXPECT_FALSE(loads.IsBehind(releases));
}

TEST(UnseenLoads, OnlyWhatWasReleasedIsTakenIn) {
  UnseenLoads loads;
  ReleaseLog releases;
  for (std::uint64_t i = 0; i < 8; ++i) loads.Watch({0x1000 + 8 * i, 8});
  EXPECT_EQ(TakenIn(loads, releases).size(), 8u);
  releases.Add(0x1008, 8);
  releases.Add(0x1040, 8);
  releases.Add(0x101c, 8);
  EXPECT_EQ(TakenIn(loads, releases), (Words{{0x1008, 8}, {0x1018, 8}, {0x1020, 8}}));
  // A new word may have been read before anything that was released since.
  loads.Watch({0x2000, 8});
  releases.Add(0x1000, 8);
  EXPECT_EQ(TakenIn(loads, releases), (Words{{0x1000, 8}, {0x2000, 8}}));
}

TEST(UnseenLoads, AllIsTakenInWhereReleasesAreNotKnown) {
  UnseenLoads loads;
  ReleaseLog releases;
  const Words all{{0x1000, 8}, {0x2000, 8}};
  for (const UnseenLoads::Word& word : all) loads.Watch(word);
  EXPECT_EQ(TakenIn(loads, releases), all);
  releases.AddAnywhere();
  releases.Add(0x1000, 8);
  EXPECT_EQ(TakenIn(loads, releases), all);
  for (int i = 0; i < 32; ++i) releases.Add(0x3000, 8);
  EXPECT_TRUE(TakenIn(loads, releases).empty());
  for (int i = 0; i < 33; ++i) releases.Add(0x3000, 8);
  EXPECT_EQ(TakenIn(loads, releases), all);
}

TEST(UnseenLoads, OfManyWordsTheOldestGoes) {
  UnseenLoads loads;
  ReleaseLog releases;
  for (std::uint64_t i = 0; i < 256; ++i) loads.Watch({0x1000 + 8 * i, 8});
  TakenIn(loads, releases);
  loads.Watch({0x1000 + 8 * 256, 8});
  EXPECT_EQ(TakenIn(loads, releases), (Words{{0x1000 + 8 * 256, 8}}));
  releases.AddAnywhere();
  const Words watched = TakenIn(loads, releases);
  EXPECT_EQ(watched.size(), 256u);
  EXPECT_FALSE(Contains(watched, 0x1000, 8));
}

TEST(UnseenLoads, NoSectorIsMissed) {
  UnseenLoads loads;
  ReleaseLog releases;
  const auto address = [](std::uint64_t i) { return 0x100000 + 2 * i * agent::kSectorSize; };
  for (std::uint64_t i = 0; i < 256; ++i) loads.Watch({address(i), agent::kSectorSize});
  EXPECT_EQ(TakenIn(loads, releases).size(), 256u);
  for (std::uint64_t i = 256; i < 300; ++i) {
    loads.Watch({address(i), agent::kSectorSize});
    EXPECT_TRUE(Contains(TakenIn(loads, releases), address(i), agent::kSectorSize)) << i;
  }
  releases.AddAnywhere();
  const Words watched = TakenIn(loads, releases);
  EXPECT_EQ(watched.size(), 256u);
  for (std::uint64_t i = 0; i < 300; ++i)
    EXPECT_TRUE(Contains(watched, address(i), agent::kSectorSize)) << i;
}

}  // namespace
}  // namespace trapline
