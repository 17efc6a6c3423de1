// When sectors settle, and for whom (guest-agent/sector_use.h, hypervisor/sector_uses.h).
#include "guest-agent/sector_use.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <random>
#include <vector>

#include "guest-agent/agent.h"
#include "guest-agent/repeats.h"
#include "hypervisor/sector_uses.h"

namespace trapline {
namespace {

using agent::IsSettled;
using agent::kSectorAtomic;
using agent::kSectorOfNobody;
using agent::kSectorOfReaders;
using agent::kSectorShared;
using agent::OlderSectorUse;
using agent::SectorMemory;
using agent::SectorTouch;
using agent::SectorUseAfter;

constexpr auto kRead = SectorTouch::kRead;
constexpr auto kWrite = SectorTouch::kWrite;

std::uint8_t UseOf(std::uint8_t byte) { return byte & agent::kSectorUseMask; }
std::uint8_t Aged(std::uint8_t byte, int windows) {
  for (int i = 0; i < windows; ++i) byte = OlderSectorUse(byte);
  return byte;
}

TEST(SectorUse, SettlesForItsOnlyUser) {
  std::uint8_t byte = SectorUseAfter(kSectorOfNobody, kWrite, 3);
  EXPECT_FALSE(IsSettled(Aged(byte, 1)));
  byte = Aged(byte, 2);
  EXPECT_TRUE(IsSettled(byte));
  EXPECT_EQ(SectorUseAfter(byte, kRead, 3), byte);
  EXPECT_EQ(Aged(byte, 9), byte);
}

TEST(SectorUse, SettlesForReaders) {
  std::uint8_t byte = Aged(SectorUseAfter(kSectorOfNobody, kWrite, 1), 1);
  byte = SectorUseAfter(byte, kRead, 2);
  EXPECT_EQ(byte, kSectorOfReaders);
  byte = Aged(SectorUseAfter(byte, kRead, 1), 2);
  EXPECT_TRUE(IsSettled(byte));
  EXPECT_EQ(SectorUseAfter(byte, kRead, 4), byte);
  EXPECT_EQ(SectorUseAfter(byte, kWrite, 4), 4);
}

TEST(SectorUse, IsSharedWhereTwoComeInAWindow) {
  std::uint8_t byte = SectorUseAfter(SectorUseAfter(kSectorOfNobody, kRead, 1), kWrite, 2);
  EXPECT_EQ(byte, kSectorShared);
  for (int i = 0; i < 3; ++i) {
    byte = OlderSectorUse(byte);
    EXPECT_EQ(UseOf(byte), kSectorShared);
    EXPECT_FALSE(IsSettled(byte));
  }
  EXPECT_EQ(OlderSectorUse(byte), kSectorOfNobody);
}

TEST(SectorUse, AtomicsNeverSettle) {
  std::uint8_t byte = Aged(SectorUseAfter(kSectorOfNobody, kWrite, 1), 2);
  byte = SectorUseAfter(byte, SectorTouch::kAtomic, 1);
  EXPECT_EQ(Aged(SectorUseAfter(Aged(byte, 5), kWrite, 1), 5), kSectorAtomic);
}

TEST(SectorUse, ThreadsWithoutANumberShare) {
  EXPECT_EQ(SectorUseAfter(kSectorOfNobody, kRead, agent::kSectorUsers + 1), kSectorShared);
}

// Whoever may leave something out has been alone with it, or has only read with the others, for the
// last two windows.
TEST(SectorUse, NobodyLeavesOutWhatOthersUse) {
  std::mt19937 random(7);  // NOLINT(bugprone-random-generator-seed): the same each time
  struct Access {
    std::uint32_t user;
    bool write;
    unsigned window;
  };
  for (int round = 0; round < 2000; ++round) {
    std::uint8_t byte = kSectorOfNobody;
    std::vector<Access> told;
    unsigned window = 0;
    for (int step = 0; step < 60; ++step) {
      if (random() % 3 == 0) {
        byte = OlderSectorUse(byte);
        ++window;
        continue;
      }
      const std::uint32_t users = 1 + round % 3;
      const Access access{1 + static_cast<std::uint32_t>(random()) % users, random() % 4 == 0,
                          window};
      const std::uint8_t use = UseOf(byte);
      if (IsSettled(byte) && (use == access.user || (use == kSectorOfReaders && !access.write))) {
        for (const Access& other : told) {
          if (other.window + 1 < window) continue;
          EXPECT_TRUE(other.user == access.user || (!other.write && !access.write));
        }
        continue;
      }
      told.push_back(access);
      byte = SectorUseAfter(byte, access.write ? kWrite : kRead, access.user);
    }
  }
}

class SectorUsesTest : public testing::Test {
 protected:
  void SetUp() override {
    static const bool mapped = [] {
      constexpr std::uint64_t kSize = TRAPLINE_CACHE_END - TRAPLINE_REPEATS;
      return mmap(reinterpret_cast<void*>(TRAPLINE_REPEATS), kSize, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1,
                  0) != MAP_FAILED ||
             errno == EEXIST;  // another test's
    }();
    ASSERT_TRUE(mapped);
    agent::Repeats().leaves_out_reads = 1;
    uses_.Start(0);
    for (std::uint32_t user = 1; user <= 2; ++user) uses_.Add(pages_[user - 1], user);
  }
  void TearDown() override { uses_.End(); }

  void Settle() {
    for (int i = 0; i < 2; ++i) uses_.Age();
  }
  // What the thread need not tell of at the address.
  int LeavesOut(std::uint32_t user, std::uint64_t address) {
    return pages_[user - 1].need_not_tell[Sectors().subsectors[SectorMemory::SubsectorOf(address)]];
  }
  // Nor of all the sector there.
  int LeavesOutWhole(std::uint32_t user, std::uint64_t address) {
    return pages_[user - 1].need_not_tell[Sectors().uses[SectorMemory::IndexOf(address)]];
  }
  static SectorMemory& Sectors() { return agent::Repeats().sectors; }

  static constexpr std::uint64_t kPlace = 0x7f1234567000;
  static constexpr int kBoth = agent::kLeaveOutReads | agent::kLeaveOutWrites;
  agent::ThreadPage pages_[2]{};
  SectorUses uses_;
};

TEST_F(SectorUsesTest, LeavesOutWhatIsSettled) {
  uses_.Touch(1, kPlace, 1024, kWrite);
  EXPECT_EQ(LeavesOut(1, kPlace), 0);
  Settle();
  EXPECT_EQ(LeavesOut(1, kPlace), kBoth);
  EXPECT_EQ(LeavesOut(1, kPlace + 1023), kBoth);
  EXPECT_EQ(LeavesOut(1, kPlace + 1024), 0);
  EXPECT_EQ(LeavesOut(2, kPlace), 0);
  EXPECT_EQ(uses_.settled().own, 2u);
  EXPECT_EQ(LeavesOutWhole(1, kPlace), kBoth);
  uses_.Touch(2, kPlace, 512, kRead);
  EXPECT_EQ(LeavesOut(1, kPlace), 0);
  Settle();
  EXPECT_EQ(LeavesOut(1, kPlace), agent::kLeaveOutReads);
  EXPECT_EQ(LeavesOut(2, kPlace), agent::kLeaveOutReads);
  EXPECT_EQ(uses_.settled().read, 8u);  // of its subsectors
  EXPECT_EQ(LeavesOutWhole(2, kPlace), agent::kLeaveOutReads);
}

TEST_F(SectorUsesTest, DividesWhatHasSettled) {
  uses_.Touch(1, kPlace, 512, kWrite);
  Settle();
  uses_.Touch(2, kPlace + 64, 8, kWrite);
  EXPECT_EQ(LeavesOut(1, kPlace), kBoth);
  EXPECT_EQ(LeavesOut(1, kPlace + 64), 0);
  EXPECT_EQ(LeavesOut(1, kPlace + 128), kBoth);
  EXPECT_EQ(LeavesOutWhole(1, kPlace), 0);
  Settle();
  EXPECT_EQ(LeavesOut(2, kPlace + 64), kBoth);
  EXPECT_EQ(LeavesOut(2, kPlace), 0);
  EXPECT_EQ(LeavesOutWhole(2, kPlace), 0);
}

TEST_F(SectorUsesTest, IsWholeAgainWhenItIsUsedInOneWay) {
  uses_.Touch(1, kPlace, 512, kWrite);
  Settle();
  uses_.Touch(2, kPlace + 64, 8, kWrite);
  Settle();
  uses_.Touch(1, kPlace + 64, 8, kWrite);
  Settle();
  EXPECT_EQ(LeavesOutWhole(1, kPlace), kBoth);
}

TEST_F(SectorUsesTest, DividesWhatTwoUseAtOnce) {
  uses_.Touch(1, kPlace, 8, kWrite);
  uses_.Touch(2, kPlace + 64, 8, kWrite);
  uses_.Touch(1, kPlace, 8, kWrite);
  Settle();
  EXPECT_EQ(LeavesOut(1, kPlace), kBoth);
  EXPECT_EQ(LeavesOut(2, kPlace + 64), kBoth);
  EXPECT_EQ(LeavesOut(2, kPlace), 0);
}

TEST_F(SectorUsesTest, AtomicsLeaveTheRestAlone) {
  uses_.Touch(1, kPlace, 512, kWrite);
  Settle();
  uses_.Touch(2, kPlace + 64, 8, SectorTouch::kAtomic);
  Settle();
  uses_.Touch(1, kPlace + 64, 8, kWrite);
  Settle();
  EXPECT_EQ(LeavesOut(1, kPlace + 64), 0);
  EXPECT_EQ(LeavesOut(1, kPlace), kBoth);
  EXPECT_EQ(LeavesOutWhole(1, kPlace), 0);
  EXPECT_EQ(uses_.ReadsLeftOutBy(kPlace + 64), 1u);
}

TEST_F(SectorUsesTest, WritesAreCounted) {
  uses_.Touch(1, kPlace, 8, kWrite);
  Settle();
  uses_.CountWrites(pages_[0], 1, 100);
  EXPECT_EQ(LeavesOut(1, kPlace), agent::kLeaveOutReads);
  EXPECT_EQ(pages_[0].counted_writes, 100);
  uses_.CountWrites(pages_[0], 1, 0);
  EXPECT_EQ(LeavesOut(1, kPlace), kBoth);
}

// Any uses of a few sectors, as time passes.
TEST_F(SectorUsesTest, NobodyLeavesOutPartsThatOthersUse) {
  std::mt19937 random(11);  // NOLINT(bugprone-random-generator-seed): the same each time
  const auto draw = [&random](std::uint32_t below) {
    return static_cast<std::uint32_t>(random()) % below;
  };
  struct Access {
    std::uint32_t user;
    SectorTouch touch;
    unsigned window;
  };
  constexpr std::uint32_t kParts = 2 * agent::kSubsectors;
  for (int round = 0; round < 3000; ++round) {
    uses_.Clear();
    std::vector<Access> told[kParts];
    unsigned window = 0;
    for (int step = 0; step < 150; ++step) {
      const std::uint32_t choice = draw(40);
      if (choice < 8) {
        uses_.Age();
        ++window;
      } else if (choice == 8) {
        const std::uint32_t first = draw(kParts), last = first + draw(kParts - first);
        uses_.Forget(kPlace + first * 64, kPlace + last * 64);
        for (std::uint32_t part = first; part < last; ++part)
          std::erase_if(told[part], [](auto& one) { return one.touch != SectorTouch::kAtomic; });
      } else {
        const SectorTouch touch = choice == 9 && round % 2 == 0 ? SectorTouch::kAtomic
                                  : choice < 20                 ? kWrite
                                                                : kRead;
        const Access access{1 + draw(2), touch, window};
        const std::uint32_t part = draw(3) == 0 ? draw(kParts) : draw(3);
        const std::uint64_t address = kPlace + part * 64 + draw(8) * 8;
        const int wanted = touch == kRead ? agent::kLeaveOutReads : agent::kLeaveOutWrites;
        const bool leaves_out =
            touch != SectorTouch::kAtomic && (LeavesOut(access.user, address) & wanted) != 0;
        if ((LeavesOutWhole(access.user, address) & wanted) != 0 && touch != SectorTouch::kAtomic) {
          EXPECT_TRUE(leaves_out);
        }
        if (!leaves_out) {
          uses_.Touch(access.user, address, 8, touch);
          told[part].push_back(access);
          continue;
        }
        for (const Access& other : told[part]) {
          EXPECT_NE(other.touch, SectorTouch::kAtomic);
          if (other.window + 1 < window) continue;
          EXPECT_TRUE(other.user == access.user || (other.touch == kRead && touch == kRead));
        }
      }
    }
  }
}

TEST(SubsectorUse, WordsGrowOlderAsBytesDo) {
  std::mt19937_64 random(3);  // NOLINT(bugprone-random-generator-seed): the same each time
  for (int round = 0; round < 100000; ++round) {
    std::uint64_t word = 0, older = 0, settled = 0;
    for (unsigned i = 0; i < agent::kSubsectors; ++i) {
      const std::uint64_t use = random() % (kSectorAtomic + 1), age = random() % 4;
      const std::uint64_t byte =
          use | (use == kSectorOfNobody || use == kSectorAtomic ? 0 : age * agent::kSectorAge);
      word |= byte << 8 * i;
      older |= std::uint64_t{OlderSectorUse(static_cast<std::uint8_t>(byte))} << 8 * i;
      settled |= std::uint64_t{IsSettled(static_cast<std::uint8_t>(byte)) ? 0x80u : 0u} << 8 * i;
    }
    ASSERT_EQ(agent::OlderSubsectorUses(word), older) << std::hex << word;
    ASSERT_EQ(agent::SettledSubsectors(word), settled) << std::hex << word;
  }
}

TEST_F(SectorUsesTest, NobodyLeavesOutReadsBeforeSomeSiteDoes) {
  agent::Repeats().leaves_out_reads = 0;
  uses_.Touch(2, kPlace, 8, kWrite);
  Settle();
  EXPECT_EQ(uses_.ReadsLeftOutBy(kPlace), kSectorOfNobody);
  agent::Repeats().leaves_out_reads = 1;
  EXPECT_EQ(uses_.ReadsLeftOutBy(kPlace), 2u);
}

TEST_F(SectorUsesTest, TellsWhoLeftSomethingOut) {
  EXPECT_EQ(uses_.ReadsLeftOutBy(kPlace), kSectorOfNobody);
  uses_.Touch(2, kPlace, 8, kWrite);
  Settle();
  EXPECT_EQ(uses_.ReadsLeftOutBy(kPlace), 2u);
  uses_.Touch(1, kPlace, 8, kWrite);
  Settle();
  uses_.Touch(2, kPlace, 8, kWrite);
  Settle();
  EXPECT_EQ(uses_.ReadsLeftOutBy(kPlace), kSectorOfReaders);
}

TEST_F(SectorUsesTest, TellsOnceOfEachSubsectorThatIsAtomic) {
  for (const std::uint64_t place : {kPlace, kPlace + agent::kSubsectorSize}) {
    EXPECT_TRUE(uses_.NoteAtomic(place + 8));
    EXPECT_FALSE(uses_.NoteAtomic(place + 8));
    EXPECT_FALSE(uses_.NoteAtomic(place + 56));
  }
  // Other objects in the same place are not left out either, once it is atomic.
  uses_.Touch(1, kPlace, 8, SectorTouch::kAtomic);
  uses_.Forget(kPlace, kPlace + 512);
  EXPECT_FALSE(uses_.NoteAtomic(kPlace));
  uses_.Touch(1, kPlace, 8, kRead);
  Settle();
  EXPECT_EQ(LeavesOut(1, kPlace), 0);
  uses_.Clear();
  EXPECT_TRUE(uses_.NoteAtomic(kPlace));
}

TEST_F(SectorUsesTest, ForgetsWholeSectors) {
  uses_.Touch(1, kPlace, 1536, kWrite);
  Settle();
  uses_.Forget(kPlace + 8, kPlace + 1536);
  EXPECT_EQ(LeavesOut(1, kPlace), kBoth);
  EXPECT_EQ(LeavesOut(1, kPlace + 512), 0);
  EXPECT_EQ(LeavesOut(1, kPlace + 1024), 0);
}

TEST_F(SectorUsesTest, AtomicsMoveAlong) {
  uses_.Touch(1, kPlace, 8, SectorTouch::kAtomic);
  uses_.Touch(1, kPlace + 512, 8, kWrite);
  uses_.Move(kPlace, kPlace + 0x10000, 4096);
  EXPECT_EQ(LeavesOut(1, kPlace + 512), 0);
  uses_.Touch(1, kPlace + 0x10000, 4096, kWrite);
  Settle();
  EXPECT_EQ(LeavesOut(1, kPlace + 0x10000), 0);
  EXPECT_EQ(LeavesOut(1, kPlace + 0x10200), kBoth);
}

TEST_F(SectorUsesTest, NumbersAreUsedAgain) {
  uses_.Touch(1, kPlace, 8, kWrite);
  Settle();
  uses_.Remove(pages_[0], 1);
  uses_.Add(pages_[0], 1);
  EXPECT_EQ(LeavesOut(1, kPlace), 0);
}

// The child of a fork: other threads, other numbers, the same memory.
TEST_F(SectorUsesTest, NothingIsLeftOfTheNumberBeforeAFork) {
  uses_.RemoveAll();
  uses_.Add(pages_[1], 1);
  uses_.Touch(2, kPlace, 8, kWrite);
  Settle();
  EXPECT_EQ(LeavesOut(2, kPlace), 0);
}

// Memory 4 GiB away has the same byte.
TEST_F(SectorUsesTest, FreshMemoryElsewhereLeavesAtomicsAlone) {
  uses_.Touch(1, kPlace, 8, SectorTouch::kAtomic);
  uses_.Forget(kPlace + (1ull << 32), kPlace + (2ull << 32));
  uses_.Touch(1, kPlace, 8, kWrite);
  Settle();
  EXPECT_EQ(LeavesOut(1, kPlace), 0);
}

TEST_F(SectorUsesTest, EndsForAll) {
  uses_.Touch(1, kPlace, 8, kWrite);
  Settle();
  uses_.End();
  EXPECT_EQ(LeavesOut(1, kPlace), 0);
  EXPECT_EQ(agent::Repeats().keeps_sector_use, 0u);
  EXPECT_TRUE(std::ranges::all_of(pages_[0].need_not_tell, [](auto byte) { return byte == 0; }));
}

}  // namespace
}  // namespace trapline
