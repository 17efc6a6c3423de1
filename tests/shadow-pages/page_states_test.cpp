// The life of a page: after each operation the whole mapping is compared, for every thread.
#include "shadow-pages/page_states.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace trapline {
namespace {

constexpr std::uint64_t kBase = 0x10000000;
constexpr std::uint64_t kPages = 1500;  // not a multiple of a large page
constexpr std::uint64_t kEnd = kBase + kPages * kPageSize;
constexpr std::uint64_t kThreads = 3;

std::uint64_t PageAt(std::uint64_t index) { return kBase + index * kPageSize; }

// What the monitor does with the answers: page tables, and which pages their threads have used.
class World {
 public:
  explicit World(SharingPolicy policy) : states_(policy) { Pass(0); }

  // True: the access trapped.
  bool Touch(std::uint64_t thread, std::uint64_t page, bool write = true, bool takes = false) {
    if (ended_.contains(thread)) Inherit(thread);
    if (mapped_[thread].contains(page) &&
        (!write || states_.Find(page, kBase, kEnd).state != PageState::kReadOnly)) {
      used_[thread].insert(page);
      return false;
    }
    const trapline::Touch touch = states_.OnTouch(
        thread, page + 8, write, kBase, kEnd,
        [&](std::uint64_t at, std::uint64_t owner) { return used_[owner].contains(at); }, takes);
    if (touch.hide) {
      EXPECT_EQ(touch.run.state, PageState::kShared);
      for (std::uint64_t user = 0; user < kThreads; ++user) Unmap(user, touch.run);
    }
    if (touch.revoke) {
      EXPECT_NE(touch.revoke->owner, thread);
      EXPECT_EQ(touch.revoke->state == PageState::kOrphaned, ended_.contains(touch.revoke->owner));
      Unmap(touch.revoke->owner, *touch.revoke);
    }
    EXPECT_LE(touch.run.start, page);
    EXPECT_GT(touch.run.end, page);
    EXPECT_GE(touch.run.start, kBase);
    EXPECT_LE(touch.run.end, kEnd);
    if (touch.run.state == PageState::kTaken) {
      EXPECT_EQ(touch.run.owner, thread);
      taken_[thread].push_back(touch.run);
      return true;
    }
    if (touch.run.state == PageState::kShared) return true;
    Map(thread, touch.run);
    used_[thread].insert(page);
    return false;
  }

  // The thread goes native.
  void Keep(std::uint64_t thread) {
    for (const PageRun& taken : std::exchange(taken_[thread], {})) {
      for (const PageRun& run : states_.KeepTaken(taken.start, taken.end, thread)) {
        EXPECT_EQ(run.state, PageState::kPrivate);
        EXPECT_EQ(run.owner, thread);
        Map(thread, run);
      }
    }
  }

  void Pass(std::uint64_t milliseconds) { states_.SetTime(now_ += milliseconds); }

  void Give(std::uint64_t page, std::uint64_t thread) {
    states_.Give(page, page + kPageSize, thread);
  }
  void MakeReadOnly(std::uint64_t page) { states_.MakeReadOnly(page, page + kPageSize); }

  // The thread makes another one. Returns of how many runs its use was asked.
  unsigned Renew(std::uint64_t thread) {
    unsigned asked = 0;
    states_.Renew(thread, [&](const PageRun& run) {
      EXPECT_EQ(OwnerOf(run.start), thread);
      ++asked;
      bool used = false;
      for (std::uint64_t page = run.start; page < run.end; page += kPageSize)
        used = used_[thread].erase(page) != 0 || used;
      return used;
    });
    return asked;
  }

  void Seal(std::uint64_t thread) {
    for (const PageRun& run : states_.Seal(thread)) Unmap(thread, run);
  }

  // The thread ends, and its pages stay in its page table for the next one of its number.
  void Orphan(std::uint64_t thread) {
    for (const PageRun& run : states_.Seal(thread)) states_.Orphan(run.start, run.end, thread);
    ended_.insert(thread);
  }
  void Inherit(std::uint64_t thread) {
    for (const PageRun& run : states_.Inherit(thread, thread)) {
      EXPECT_EQ(run.state, PageState::kPrivate);
      EXPECT_EQ(run.owner, thread);
    }
    ended_.erase(thread);
  }

  void Clear(std::uint64_t start, std::uint64_t end) {
    states_.Clear(start, end);
    for (std::uint64_t thread = 0; thread < kThreads; ++thread) Unmap(thread, {start, end, {}, 0});
  }

  void Reset() {
    for (const PageRun& run : states_.Reset()) {
      for (std::uint64_t thread = 0; thread < kThreads; ++thread) Unmap(thread, run);
    }
  }

  void Untrack(std::uint64_t start, std::uint64_t end) { states_.Untrack(start, end); }

  void Track(std::uint64_t start, std::uint64_t end) {
    states_.Track(start, end);
    for (std::uint64_t thread = 0; thread < kThreads; ++thread) Unmap(thread, {start, end, {}, 0});
  }

  // No page is mapped for a thread that it should trap on, in any table.
  void Verify() {
    std::set<std::uint64_t> found;
    std::uint64_t expected = kBase;
    states_.ForEach(kBase, kEnd, [&](const PageRun& run) {
      EXPECT_EQ(run.start, expected);  // no gap, no overlap
      expected = run.end;
      for (std::uint64_t page = run.start; page < run.end; page += kPageSize) {
        EXPECT_EQ(states_.Find(page, kBase, kEnd).state, run.state);
        for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
          if (!mapped_[thread].contains(page)) continue;
          EXPECT_TRUE(
              PageStates::Visible(run, thread) || run.state == PageState::kReadOnly ||
              (run.state == PageState::kOrphaned && run.owner == thread && ended_.contains(thread)))
              << "page " << (page - kBase) / kPageSize << " is mapped for thread " << thread;
        }
      }
    });
    EXPECT_EQ(expected, kEnd);
  }

  PageState StateOf(std::uint64_t page) { return states_.Find(page, kBase, kEnd).state; }
  std::uint64_t OwnerOf(std::uint64_t page) { return states_.Find(page, kBase, kEnd).owner; }
  PageStates& states() { return states_; }

 private:
  void Map(std::uint64_t thread, const PageRun& run) {
    for (std::uint64_t page = run.start; page < run.end; page += kPageSize)
      mapped_[thread].insert(page);
  }
  void Unmap(std::uint64_t thread, const PageRun& run) {
    for (std::uint64_t page = run.start; page < run.end; page += kPageSize) {
      mapped_[thread].erase(page);
      used_[thread].erase(page);
    }
  }

  PageStates states_;
  std::uint64_t now_ = 12'345;
  std::map<std::uint64_t, std::set<std::uint64_t>> mapped_, used_;
  std::map<std::uint64_t, std::vector<PageRun>> taken_;
  std::set<std::uint64_t> ended_;
};

TEST(PageStates, ReadOnlyPagesAreForAllUntilOneIsWritten) {
  World world(SharingPolicy::kAdaptive);
  for (std::uint64_t page = 0; page < 3; ++page) world.Touch(0, PageAt(page));
  for (std::uint64_t page = 0; page < 3; ++page) EXPECT_TRUE(world.Touch(1, PageAt(page)));
  for (std::uint64_t page = 0; page < 3; ++page) world.MakeReadOnly(PageAt(page));
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    EXPECT_FALSE(world.Touch(thread, PageAt(1), false));
    world.Verify();
  }
  EXPECT_TRUE(world.Touch(2, PageAt(1)));
  world.Verify();
  EXPECT_EQ(world.StateOf(PageAt(0)), PageState::kReadOnly);
  EXPECT_EQ(world.StateOf(PageAt(1)), PageState::kShared);
  EXPECT_EQ(world.StateOf(PageAt(2)), PageState::kReadOnly);
  EXPECT_TRUE(world.Touch(0, PageAt(1), false)) << "not read-only again by itself";
}

TEST(PageStates, GivenPagesAreTheirOwnersUntilAnotherThreadComes) {
  World world(SharingPolicy::kAdaptive);
  world.Touch(0, PageAt(5));
  EXPECT_TRUE(world.Touch(1, PageAt(5)));
  world.Give(PageAt(5), 1);
  EXPECT_FALSE(world.Touch(1, PageAt(5)));
  world.Verify();
  EXPECT_TRUE(world.Touch(0, PageAt(5)));
  world.Verify();
  EXPECT_EQ(world.StateOf(PageAt(5)), PageState::kShared);
}

TEST(PageStates, PagesThatWereAnothersForLongAreTaken) {
  World world(SharingPolicy::kAdaptive);
  world.Touch(0, PageAt(3));
  world.Pass(40);
  EXPECT_TRUE(world.Touch(1, PageAt(3), true, true)) << "the other one has used it";
  EXPECT_EQ(world.StateOf(PageAt(3)), PageState::kTaken);
  EXPECT_TRUE(world.Touch(1, PageAt(3), true, true));
  world.Keep(1);
  EXPECT_EQ(world.StateOf(PageAt(3)), PageState::kPrivate);
  EXPECT_EQ(world.OwnerOf(PageAt(3)), 1u);
  world.Verify();
  EXPECT_FALSE(world.Touch(1, PageAt(3)));
}

TEST(PageStates, WhoComesBackSoonSharesWhatWasTaken) {
  World world(SharingPolicy::kAdaptive);
  world.Touch(0, PageAt(3));
  world.Pass(12);
  EXPECT_TRUE(world.Touch(1, PageAt(3), true, true));
  EXPECT_EQ(world.StateOf(PageAt(3)), PageState::kShared) << "not for long enough";
  // From now on four times as long.
  world.Give(PageAt(3), 0);
  world.Touch(0, PageAt(3));
  world.Pass(76);
  EXPECT_TRUE(world.Touch(1, PageAt(3), true, true));
  EXPECT_EQ(world.StateOf(PageAt(3)), PageState::kShared);
  world.Give(PageAt(3), 0);
  world.Touch(0, PageAt(3));
  world.Pass(400);
  EXPECT_TRUE(world.Touch(1, PageAt(3), true, true));
  EXPECT_EQ(world.StateOf(PageAt(3)), PageState::kTaken);
  EXPECT_TRUE(world.Touch(0, PageAt(3), true, true));
  EXPECT_EQ(world.StateOf(PageAt(3)), PageState::kShared) << "though it is not kept yet";
  world.Keep(1);
  EXPECT_EQ(world.StateOf(PageAt(3)), PageState::kShared);
  world.Verify();
}

TEST(PageStates, WhoTakesNoneSharesThem) {
  World world(SharingPolicy::kAdaptive);
  world.Touch(0, PageAt(3));
  world.Pass(40);
  EXPECT_TRUE(world.Touch(1, PageAt(3)));
  EXPECT_EQ(world.StateOf(PageAt(3)), PageState::kShared);
}

TEST(PageStates, NeighboursAreTakenThatWereAnothersForLong) {
  World world(SharingPolicy::kAdaptive);
  const auto expect = [&](std::initializer_list<std::uint64_t> pages, PageState state) {
    for (const std::uint64_t page : pages) EXPECT_EQ(world.StateOf(PageAt(page)), state) << page;
  };
  for (std::uint64_t page = 0; page < 128; ++page) world.Touch(0, PageAt(page));
  world.Pass(40);
  world.Give(PageAt(20), 0);
  world.Touch(0, PageAt(20));
  world.Touch(1, PageAt(3), true, true);
  world.Touch(1, PageAt(12), true, true);
  expect({3, 12, 15}, PageState::kTaken);
  expect({2, 4, 11, 16}, PageState::kPrivate);
  // 16, and then 64, as far as they are alike.
  world.Touch(1, PageAt(11), true, true);
  world.Touch(1, PageAt(40), true, true);
  expect({5, 21, 63}, PageState::kTaken);
  expect({0, 16, 19, 20, 64}, PageState::kPrivate);
  EXPECT_EQ(world.OwnerOf(PageAt(20)), 0u);
  world.Verify();
}

TEST(PageStates, FreshMemoryHasNoPast) {
  World world(SharingPolicy::kAdaptive);
  world.Touch(0, PageAt(20));
  world.Touch(1, PageAt(20), true, true);
  EXPECT_EQ(world.StateOf(PageAt(20)), PageState::kShared);
  world.Clear(PageAt(20), PageAt(21));
  world.Touch(0, PageAt(20));
  world.Pass(40);
  world.Touch(1, PageAt(20), true, true);
  EXPECT_EQ(world.StateOf(PageAt(20)), PageState::kTaken);
}

TEST(PageStates, WhatAThreadHasTakenIsSharedOnceItEnds) {
  World world(SharingPolicy::kAdaptive);
  world.Touch(0, PageAt(3));
  world.Pass(40);
  world.Touch(1, PageAt(3), true, true);
  world.Seal(1);
  EXPECT_EQ(world.StateOf(PageAt(3)), PageState::kShared);
  world.Keep(1);
  EXPECT_EQ(world.StateOf(PageAt(3)), PageState::kShared);
}

TEST(PageTenure, GrowsEachTimeThePageIsSharedUpToTenSeconds) {
  PageTenure tenure;
  std::uint64_t now = 1'000'000;
  const auto needed = [&] {
    tenure.SetTime(now);
    tenure.Begin(PageAt(7), PageAt(8), false);
    std::uint64_t passed = 0;
    for (; !tenure.IsLong(PageAt(7) + 100); passed += 4) tenure.SetTime(now += 4);
    return passed;
  };
  for (const std::uint64_t expected : {20, 80, 320, 1280, 5120, 10240, 10240}) {
    EXPECT_EQ(needed(), expected);
    tenure.OnShared(PageAt(7), PageAt(8));
  }
  tenure.Begin(PageAt(7), PageAt(8), true);
  EXPECT_EQ(needed(), 20u);
}

TEST(PageStates, FirstTouchMakesPrivateSecondThreadShares) {
  World world(SharingPolicy::kShared);
  EXPECT_FALSE(world.Touch(0, PageAt(3)));
  EXPECT_EQ(world.StateOf(PageAt(3)), PageState::kPrivate);
  EXPECT_FALSE(world.Touch(0, PageAt(3)));
  EXPECT_TRUE(world.Touch(1, PageAt(3)));
  EXPECT_EQ(world.StateOf(PageAt(3)), PageState::kShared);
  EXPECT_TRUE(world.Touch(0, PageAt(3)));  // the former owner traps too
  world.Verify();
}

TEST(PageStates, UnusedPagesOfARunChangeHands) {
  World world(SharingPolicy::kShared);
  EXPECT_FALSE(world.Touch(0, PageAt(0)));
  ASSERT_EQ(world.OwnerOf(PageAt(5)), 0u);
  ASSERT_EQ(world.StateOf(PageAt(5)), PageState::kPrivate);
  EXPECT_FALSE(world.Touch(1, PageAt(5)));
  EXPECT_EQ(world.OwnerOf(PageAt(5)), 1u);
  EXPECT_EQ(world.OwnerOf(PageAt(0)), 0u);
  EXPECT_TRUE(world.Touch(0, PageAt(5)));
  world.Verify();
}

TEST(PageStates, ExactSharesFromTheFirstTouch) {
  World world(SharingPolicy::kExact);
  EXPECT_TRUE(world.Touch(0, PageAt(3)));
  EXPECT_TRUE(world.Touch(0, PageAt(3)));
  EXPECT_EQ(world.StateOf(PageAt(3)), PageState::kShared);
  world.Verify();
}

TEST(PageStates, SequentialTouchesGetLongerRuns) {
  World world(SharingPolicy::kShared);
  unsigned faults = 0;
  PageStates& states = world.states();
  for (std::uint64_t page = 0; page < 1024; ++page) {
    if (states.Find(PageAt(page), kBase, kEnd).state == PageState::kUntouched) ++faults;
    world.Touch(0, PageAt(page));
  }
  EXPECT_LE(faults, 10u);  // 64 KiB, then twice as much each time
}

TEST(PageStates, SequentialSharingTakesGrowingRuns) {
  World world(SharingPolicy::kShared);
  for (std::uint64_t page = 0; page < 1024; ++page) world.Touch(0, PageAt(page));
  unsigned faults = 0;
  for (std::uint64_t page = 0; page < 1024; ++page) {
    if (world.StateOf(PageAt(page)) == PageState::kPrivate) ++faults;
    EXPECT_TRUE(world.Touch(1, PageAt(page)));
  }
  EXPECT_LE(faults, 40u);
  world.Verify();
}

TEST(PageStates, SharingRowsOfABlockTakesGrowingRunsToo) {
  // Every other pair of pages, from the top down.
  World world(SharingPolicy::kShared);
  for (std::uint64_t page = 0; page < 1024; ++page) world.Touch(0, PageAt(page));
  unsigned faults = 0;
  for (std::uint64_t page = 1024; page-- > 0;) {
    if (page % 4 >= 2) continue;
    if (world.StateOf(PageAt(page)) == PageState::kPrivate) ++faults;
    world.Touch(1, PageAt(page));
  }
  EXPECT_LE(faults, 48u);
  world.Verify();
}

TEST(Neighbourhood, GrowsByNewPagesOnly) {
  Neighbourhood neighbourhood;
  const auto pages = [&](std::uint64_t page) {
    const Neighbourhood::Pages around = neighbourhood.Around(page * kPageSize);
    EXPECT_LE(around.start, page * kPageSize);
    EXPECT_GT(around.end, page * kPageSize);
    EXPECT_EQ(around.start % (around.end - around.start), 0u);
    return (around.end - around.start) / kPageSize;
  };
  EXPECT_EQ(pages(640), 1u);
  EXPECT_EQ(pages(640), 1u);  // it went back in between
  EXPECT_EQ(pages(641), 4u);
  EXPECT_EQ(pages(642), 4u);
  EXPECT_EQ(pages(644), 16u);
  EXPECT_EQ(pages(700), 64u);
  EXPECT_EQ(pages(650), 64u);
  EXPECT_EQ(pages(704), 16u);  // beside one that was taken whole
  EXPECT_EQ(pages(639), 16u);
  EXPECT_EQ(pages(0), 1u);
}

TEST(Neighbourhood, ManyAreRememberedAtOnce) {
  constexpr std::uint64_t kMany = 256;
  Neighbourhood neighbourhood;
  // Every fourth one, page by page.
  const auto size = [&](std::uint64_t number, std::uint64_t page) {
    const auto around =
        neighbourhood.Around(number * 4 * Neighbourhood::kLargest + page * kPageSize);
    return (around.end - around.start) / kPageSize;
  };
  for (std::uint64_t number = 0; number < kMany; ++number) EXPECT_EQ(size(number, 0), 1u);
  for (std::uint64_t number = 0; number < kMany; ++number) EXPECT_EQ(size(number, 1), 4u);
  for (std::uint64_t number = 0; number < kMany; ++number) EXPECT_EQ(size(number, 4), 16u);
}

TEST(PageStates, SealGivesThePagesBack) {
  World world(SharingPolicy::kShared);
  world.Touch(0, PageAt(0));
  world.Touch(1, PageAt(700));
  world.Seal(0);
  EXPECT_EQ(world.StateOf(PageAt(0)), PageState::kUntouched);
  EXPECT_EQ(world.OwnerOf(PageAt(700)), 1u);
  EXPECT_FALSE(world.Touch(1, PageAt(0)));
  EXPECT_EQ(world.OwnerOf(PageAt(0)), 1u);
  world.Verify();
}

// Threads 0 and 1 walk through 256 pages each.
void WalkThroughHalves(World& world) {
  for (std::uint64_t thread = 0; thread < 2; ++thread) {
    for (std::uint64_t page = 0; page < 256; ++page)
      world.Touch(thread, PageAt(256 * thread + page));
  }
}

TEST(PageStates, WhatIsOrphanedIsTheNextThreads) {
  World world(SharingPolicy::kAdaptive);
  WalkThroughHalves(world);
  world.Orphan(0);
  EXPECT_EQ(world.StateOf(PageAt(0)), PageState::kOrphaned);
  EXPECT_EQ(world.StateOf(PageAt(256)), PageState::kPrivate);
  world.Verify();
  world.Inherit(0);
  world.Verify();
  for (std::uint64_t page = 0; page < 256; ++page) {
    EXPECT_EQ(world.StateOf(PageAt(page)), PageState::kPrivate);
    EXPECT_EQ(world.OwnerOf(PageAt(page)), 0u);
  }
  EXPECT_FALSE(world.Touch(0, PageAt(77)));
  EXPECT_TRUE(world.states().IsInherited(PageAt(77)));
  EXPECT_FALSE(world.states().IsInherited(PageAt(256)));
}

TEST(PageStates, WhoComesForWhatIsOrphanedHasItAsIfItWereNobodys) {
  World world(SharingPolicy::kAdaptive);
  WalkThroughHalves(world);
  world.Orphan(0);
  EXPECT_FALSE(world.Touch(1, PageAt(20)));
  EXPECT_EQ(world.OwnerOf(PageAt(16)), 1u);
  EXPECT_EQ(world.OwnerOf(PageAt(31)), 1u);
  EXPECT_EQ(world.StateOf(PageAt(32)), PageState::kOrphaned);
  // ... in runs that double.
  EXPECT_FALSE(world.Touch(1, PageAt(32)));
  EXPECT_EQ(world.OwnerOf(PageAt(63)), 1u);
  world.Verify();
  world.Inherit(0);
  EXPECT_EQ(world.OwnerOf(PageAt(16)), 1u);
  EXPECT_EQ(world.OwnerOf(PageAt(64)), 0u);
  world.Verify();
}

// Nobody knows whether its owner has used it.
TEST(PageStates, WhatIsInheritedIsSharedOnceAnotherComes) {
  World world(SharingPolicy::kAdaptive);
  WalkThroughHalves(world);
  world.Orphan(0);
  world.Inherit(0);
  EXPECT_TRUE(world.Touch(1, PageAt(70)));
  EXPECT_EQ(world.StateOf(PageAt(70)), PageState::kShared);
  EXPECT_FALSE(world.states().IsInherited(PageAt(70)));
  EXPECT_TRUE(world.states().IsInherited(PageAt(71)));
  world.Verify();
}

TEST(PageStates, AQuietMomentLeavesWhatIsOrphanedIfAThreadIsLeft) {
  PageStates states(SharingPolicy::kAdaptive);
  states.Orphan(PageAt(0), PageAt(40), 3);
  states.Reset(1);
  EXPECT_EQ(states.Find(PageAt(0), kBase, kEnd).state, PageState::kOrphaned);
  EXPECT_EQ(states.Reset().size(), 1u);
  EXPECT_EQ(states.Find(PageAt(0), kBase, kEnd).state, PageState::kUntouched);
}

TEST(PageStates, WhoMakesAThreadKeepsPagesThatNobodyElseComesFor) {
  World world(SharingPolicy::kAdaptive);
  world.Touch(0, PageAt(0));
  world.Touch(0, PageAt(700));
  world.Renew(0);
  world.Verify();
  EXPECT_EQ(world.OwnerOf(PageAt(0)), 0u);
  // The new thread's touch takes them, as if nobody had had them: neighbours, too, but for what has
  // been used again.
  EXPECT_FALSE(world.Touch(0, PageAt(707)));
  EXPECT_FALSE(world.Touch(1, PageAt(0)));
  EXPECT_EQ(world.OwnerOf(PageAt(15)), 1u);
  EXPECT_FALSE(world.Touch(1, PageAt(704)));
  EXPECT_EQ(world.OwnerOf(PageAt(706)), 1u);
  EXPECT_EQ(world.OwnerOf(PageAt(707)), 0u);
  EXPECT_TRUE(world.Touch(1, PageAt(707)));
  EXPECT_EQ(world.StateOf(PageAt(707)), PageState::kShared);
  world.Verify();
}

TEST(PageStates, WalksGrowOverPagesThatAreNotUsedAnyMore) {
  World world(SharingPolicy::kAdaptive);
  for (std::uint64_t page = 0; page < kPages; ++page) world.Touch(0, PageAt(page));
  world.Renew(0);
  unsigned faults = 0;
  for (std::uint64_t page = 0; page < kPages; ++page) {
    const bool met = world.OwnerOf(PageAt(page)) != 1;
    EXPECT_FALSE(world.Touch(1, PageAt(page)));
    faults += met ? 1 : 0;
  }
  // Runs of 16, 32, 64, 128, 256 and 512 pages, as over untouched ones.
  EXPECT_LE(faults, 12u);
  EXPECT_EQ(world.states().Count(PageState::kPrivate), kPages);
  world.Verify();
}

TEST(PageStates, PagesUsedAtManyRenewalsInARowAreNotAskedFor) {
  World world(SharingPolicy::kAdaptive);
  world.Touch(0, PageAt(0));
  world.Touch(0, PageAt(64));
  unsigned asked = 0;
  for (unsigned i = 0; i < 10; ++i) {
    world.Touch(0, PageAt(1));
    if (i % 2 == 0) world.Touch(0, PageAt(65));
    asked = world.Renew(0);
  }
  EXPECT_EQ(asked, 1u);  // the one that was used every other time
  // It is its thread's, as far as is known, whether that has used it since or not.
  EXPECT_TRUE(world.Touch(1, PageAt(1)));
  EXPECT_FALSE(world.Touch(1, PageAt(64)));
  world.Verify();
}

TEST(PageStates, AQuietMomentLeavesThePagesOfTheThreadThatIsLeft) {
  PageStates states(SharingPolicy::kAdaptive);
  const auto used = [](std::uint64_t, std::uint64_t) { return true; };
  states.OnTouch(1, PageAt(0), true, kBase, kEnd, used);
  states.OnTouch(2, PageAt(100), true, kBase, kEnd, used);
  states.Share(PageAt(200), PageAt(201));
  states.Untrack(PageAt(300), PageAt(301));
  states.Reset(1);
  EXPECT_EQ(states.Find(PageAt(0), kBase, kEnd).owner, 1u);
  EXPECT_EQ(states.Find(PageAt(100), kBase, kEnd).state, PageState::kUntouched);
  EXPECT_EQ(states.Find(PageAt(200), kBase, kEnd).state, PageState::kUntouched);
  EXPECT_EQ(states.Find(PageAt(300), kBase, kEnd).state, PageState::kUntracked);
  states.Reset();
  EXPECT_EQ(states.Find(PageAt(0), kBase, kEnd).state, PageState::kUntouched);
}

TEST(PageStates, WhatQuietMomentsInARowFindSharedStaysShared) {
  World world(SharingPolicy::kAdaptive);
  const auto share = [&](std::uint64_t page) {
    for (std::uint64_t thread = 0; thread < 2; ++thread) world.Touch(thread, page);
  };
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(world.StateOf(PageAt(0)), PageState::kUntouched);
    share(PageAt(0));
    world.Touch(0, PageAt(20));  // one thread's own
    if (i != 1) share(PageAt(40));
    world.Reset();
    world.Verify();
  }
  EXPECT_EQ(world.StateOf(PageAt(0)), PageState::kShared);
  EXPECT_EQ(world.StateOf(PageAt(20)), PageState::kUntouched);
  EXPECT_EQ(world.StateOf(PageAt(40)), PageState::kUntouched);
  // Until a thread has it for itself, or it is not there any more.
  world.Reset();
  EXPECT_EQ(world.StateOf(PageAt(0)), PageState::kShared);
  world.Give(PageAt(0), 1);
  world.Reset();
  EXPECT_EQ(world.StateOf(PageAt(0)), PageState::kUntouched);
  share(PageAt(0));
  world.Reset();
  EXPECT_EQ(world.StateOf(PageAt(0)), PageState::kUntouched);
}

TEST(PageStates, MuchThatIsSharedDoesNotStaySo) {
  World world(SharingPolicy::kAdaptive);
  for (unsigned i = 0; i < 5; ++i) {
    for (unsigned page = 0; page < 1100; ++page) {
      for (std::uint64_t thread = 0; thread < 2; ++thread) world.Touch(thread, PageAt(page));
    }
    world.Reset();
    EXPECT_EQ(world.StateOf(PageAt(0)), PageState::kUntouched);
  }
  world.Verify();
}

TEST(PageStates, UntrackedPagesTrapNobodyUntilTrackedAgain) {
  World world(SharingPolicy::kShared);
  world.Touch(0, PageAt(4));
  world.Touch(1, PageAt(4));
  world.Untrack(PageAt(4), PageAt(5));
  EXPECT_FALSE(world.Touch(0, PageAt(4)));
  EXPECT_FALSE(world.Touch(1, PageAt(4)));
  world.Reset();
  EXPECT_EQ(world.StateOf(PageAt(4)), PageState::kUntracked);
  world.Track(PageAt(0), PageAt(8));
  EXPECT_EQ(world.StateOf(PageAt(4)), PageState::kUntouched);
  world.Verify();
}

TEST(PageStates, MoveTakesTheStateAlong) {
  PageStates states(SharingPolicy::kShared);
  const auto never = [](std::uint64_t, std::uint64_t) { return true; };
  states.OnTouch(7, PageAt(0), true, kBase, PageAt(1), never);
  states.OnTouch(7, PageAt(1), true, PageAt(1), PageAt(2), never);
  states.OnTouch(8, PageAt(1), true, PageAt(1), PageAt(2), never);
  states.Move(PageAt(0), PageAt(100), 4 * kPageSize);
  EXPECT_EQ(states.Find(PageAt(0), kBase, kEnd).state, PageState::kUntouched);
  EXPECT_EQ(states.Find(PageAt(100), kBase, kEnd).owner, 7u);
  EXPECT_EQ(states.Find(PageAt(101), kBase, kEnd).state, PageState::kShared);
  EXPECT_EQ(states.Find(PageAt(102), kBase, kEnd).state, PageState::kUntouched);
}

class PageStatesRandom : public testing::TestWithParam<unsigned> {};

TEST_P(PageStatesRandom, NoThreadSeesWhatItMustTrapOn) {
  std::mt19937_64 random(GetParam());
  World world(GetParam() % 4 == 0   ? SharingPolicy::kExact
              : GetParam() % 4 == 1 ? SharingPolicy::kAdaptive
                                    : SharingPolicy::kShared);
  const bool takes = GetParam() % 4 == 1;
  // By whom each page was really touched since it was last untouched: nobody else's access may have
  // gone unnoticed.
  for (int step = 0; step < 400; ++step) {
    const std::uint64_t first = random() % kPages;
    const std::uint64_t last = std::min(kPages, first + 1 + random() % 64);
    const std::uint64_t thread = random() % kThreads;
    switch (random() % 15) {
      case 6:
        if (!takes) break;
        world.Orphan(thread);
        break;
      case 7:
        if (takes) world.Inherit(thread);
        break;
      case 0:
        world.Seal(thread);
        break;
      case 5:
        world.Renew(thread);
        break;
      case 1:
        world.Clear(PageAt(first), PageAt(last));
        break;
      case 2:
        world.Untrack(PageAt(first), PageAt(last));
        break;
      case 3:
        world.Track(PageAt(first), PageAt(last));
        break;
      case 4:
        for (std::uint64_t page = first; page < last; ++page) {
          if (world.StateOf(PageAt(page)) != PageState::kShared) continue;
          if (random() % 2 == 0) {
            world.Give(PageAt(page), thread);
          } else {
            world.MakeReadOnly(PageAt(page));
          }
        }
        break;
      default:
        for (std::uint64_t page = first; page < last; page += 1 + random() % 3)
          world.Touch(thread, PageAt(page), random() % 2 == 0, takes && random() % 4 != 0);
        if (random() % 4 == 0) world.Keep(thread);
        world.Pass(random() % 16);
    }
    if (step % 8 == 0) world.Verify();
    if (HasFailure()) return;
  }
  world.Verify();
}

INSTANTIATE_TEST_SUITE_P(Seeds, PageStatesRandom, testing::Range(1u, 25u));

}  // namespace
}  // namespace trapline
