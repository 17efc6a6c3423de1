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
    uses_.Start(0);
    for (std::uint32_t user = 1; user <= 2; ++user) uses_.Add(pages_[user - 1], user);
  }
  void TearDown() override { uses_.End(); }

  void Settle() {
    for (int i = 0; i < 2; ++i) uses_.Age();
  }
  // What the thread need not tell of at the address.
  int LeavesOut(std::uint32_t user, std::uint64_t address) {
    const auto& sectors = agent::Repeats().sectors;
    return pages_[user - 1].need_not_tell[sectors.uses[agent::SectorMemory::IndexOf(address)]];
  }

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
  uses_.Touch(2, kPlace, 1, kRead);
  EXPECT_EQ(LeavesOut(1, kPlace), 0);
  Settle();
  EXPECT_EQ(LeavesOut(1, kPlace), agent::kLeaveOutReads);
  EXPECT_EQ(LeavesOut(2, kPlace), agent::kLeaveOutReads);
  EXPECT_EQ(uses_.settled().read, 1u);
}

TEST_F(SectorUsesTest, TellsWhoLeftSomethingOut) {
  EXPECT_EQ(uses_.LeftOutBy(kPlace), kSectorOfNobody);
  uses_.Touch(2, kPlace, 8, kWrite);
  Settle();
  EXPECT_EQ(uses_.LeftOutBy(kPlace), 2u);
  uses_.Touch(1, kPlace, 8, kWrite);
  Settle();
  uses_.Touch(2, kPlace, 8, kWrite);
  Settle();
  EXPECT_EQ(uses_.LeftOutBy(kPlace), kSectorOfReaders);
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
