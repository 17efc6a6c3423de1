// When a thread leaves the code cache for native code, by what its stints there were worth.
#include "hypervisor/adaptive_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace trapline {
namespace {

constexpr std::uint64_t kExit = 30'000;  // ns
constexpr std::int64_t kFirst = 32768, kShortest = 512, kLongest = 1 << 17;

// A thread whose stints all begin when it has made as many accesses in the cache as it was to make.
class Thread {
 public:
  explicit Thread(std::uint32_t hot_after = 0) : first(policy.Start(now, hot_after)) {}

  void BeginStint() { policy.BeginStint(now, 0, repeats); }
  // It is out of the guest `after` nanoseconds later, and handled `took` nanoseconds after that.
  void Exit(std::uint64_t after, std::uint64_t took) {
    policy.BeginExit(now += after);
    policy.EndExit(now += took);
  }
  // It meets a shared page after so long, natively, and comes out of the guest. How long it stays
  // in the cache then.
  std::int64_t EndStint(std::uint64_t after, std::uint64_t rewatched = 0) {
    policy.BeginExit(now += after + kExit);
    return policy.EndStint(now, rewatched);
  }
  // A stint without another exit, so long.
  std::int64_t Stint(std::uint64_t length) {
    BeginStint();
    return EndStint(length);
  }
  // A stint that pays, after a stay that took so long. How long the thread stays next.
  std::int64_t StintAfterStayOf(std::uint64_t length) {
    now += length;
    return Stint(1'000'000'000);
  }
  // So many accesses of the present stay are repeats. Their weight, all stays taken together.
  double WeightAfter(std::uint64_t repeats_in_stay) {
    repeats += repeats_in_stay;
    BeginStint();
    return policy.WeightOfRepeats();
  }

  std::uint64_t now = 5'000'000, repeats = 0;
  AdaptivePolicy policy{kExit};
  const std::int64_t first;
};

// Natively the thread must gain more than 1/100 of the exit that ends the stint.
constexpr std::uint64_t kGain = 100, kGainOverRepeats = 20;
constexpr std::uint64_t kTooShort = kExit / kGain - 1, kLongEnough = kExit / kGain;
constexpr std::uint64_t kAlwaysPays = 1'000'000;

TEST(AdaptivePolicy, CodeIsHotAfterManyAccesses) { EXPECT_EQ(Thread().first, kFirst); }

TEST(AdaptivePolicy, CodeIsHotAfterAsManyAccessesAsIsAskedFor) { EXPECT_EQ(Thread(7).first, 7); }

TEST(AdaptivePolicy, NeverStaysShorterThanIsAskedFor) {
  Thread thread(4 * kLongest);
  EXPECT_EQ(thread.Stint(kTooShort), 4 * kLongest);
  EXPECT_EQ(thread.Stint(kAlwaysPays), 4 * kLongest);
}

TEST(AdaptivePolicy, PatienceDoublesWhenAStintDidNotPay) {
  Thread thread;
  EXPECT_EQ(thread.Stint(kTooShort), 2 * kShortest);
  EXPECT_EQ(thread.Stint(kTooShort), 4 * kShortest);
}

TEST(AdaptivePolicy, PatienceHalvesWhenAStintPaid) {
  Thread thread;
  thread.Stint(kTooShort);
  thread.Stint(kTooShort);
  EXPECT_EQ(thread.Stint(kLongEnough), 2 * kShortest);
}

TEST(AdaptivePolicy, PatienceIsNeverLessThanTheShortest) {
  Thread thread;
  EXPECT_EQ(thread.Stint(kLongEnough), kShortest);
}

TEST(AdaptivePolicy, PatienceIsNeverLessThanWhatIsAskedFor) {
  Thread thread(7);
  EXPECT_EQ(thread.Stint(kTooShort), 14);
  EXPECT_EQ(thread.Stint(kLongEnough), 7);
  EXPECT_EQ(thread.Stint(kLongEnough), 7);
}

TEST(AdaptivePolicy, PatienceIsNeverMoreThanTheLongest) {
  Thread thread;
  std::int64_t patience = 0;
  for (int i = 0; i < 100; ++i) patience = std::max(patience, thread.Stint(kTooShort));
  EXPECT_EQ(patience, kLongest);
}

// From stays of 8,192 accesses on native code is tried four times in a row.
constexpr std::int64_t kLong = 8192;
constexpr int kTries = 4;

void GrowPatience(Thread& thread) {
  std::int64_t stay = kShortest;
  while (stay < kLong) stay = thread.Stint(kTooShort);
  EXPECT_EQ(stay, kLong);
}

TEST(AdaptivePolicy, BeforeALongStayItTriesSomeMoreTimes) {
  Thread thread;
  GrowPatience(thread);
  for (int i = 0; i < kTries; ++i) EXPECT_EQ(thread.Stint(kTooShort), kShortest);
  EXPECT_EQ(thread.Stint(kTooShort), 2 * kLong);
}

TEST(AdaptivePolicy, ItTriesLessOftenAsLongAsThatDoesNotHelp) {
  Thread thread;
  GrowPatience(thread);
  for (int rows = 0; rows < 9; ++rows) {
    for (int i = 0; i < kTries; ++i) EXPECT_EQ(thread.Stint(kTooShort), kShortest);
    for (int i = 0; i < std::min(1 << rows, 64); ++i) EXPECT_GE(thread.Stint(kTooShort), kLong);
  }
}

TEST(AdaptivePolicy, ATryThatPaysEndsTheRow) {
  Thread thread;
  GrowPatience(thread);
  for (int i = 0; i < kTries + 1; ++i) thread.Stint(kTooShort);  // none helps
  EXPECT_EQ(thread.Stint(kTooShort), kShortest);
  EXPECT_EQ(thread.Stint(kAlwaysPays), kLong);
  // And the next ones come as soon as at first.
  for (int rows = 0; rows < 2; ++rows) {
    for (int i = 0; i < kTries; ++i) EXPECT_EQ(thread.Stint(kTooShort), kShortest);
    EXPECT_EQ(thread.Stint(kTooShort), 2 * kLong << rows);
  }
}

TEST(AdaptivePolicy, ATryMustGainMore) {
  constexpr std::uint64_t kGainOfTry = 8;
  Thread thread;
  GrowPatience(thread);
  EXPECT_EQ(thread.Stint(kTooShort), kShortest);
  EXPECT_EQ(thread.Stint(kExit / kGainOfTry - 1), kShortest);
  EXPECT_EQ(thread.Stint(kExit / kGainOfTry), kLong / 2);
  EXPECT_EQ(thread.Stint(kLongEnough), kLong / 4);
}

TEST(AdaptivePolicy, TriesAreNoShorterThanIsAskedFor) {
  Thread thread(2 * kLong);
  for (int i = 0; i < 20; ++i) EXPECT_GE(thread.Stint(kTooShort), 2 * kLong);
}

// kShortest accesses may take 1 ms.
TEST(AdaptivePolicy, AStayIsShorterWhereAccessesTookLong) {
  Thread thread;
  EXPECT_EQ(thread.StintAfterStayOf(1'000'000 * (kFirst / kShortest)), kShortest);
  EXPECT_EQ(thread.StintAfterStayOf(4'000'000), kShortest / 4);
  EXPECT_EQ(thread.StintAfterStayOf(250'000), kShortest);
}

TEST(AdaptivePolicy, AStayIsNeverVeryShort) {
  Thread thread;
  EXPECT_EQ(thread.StintAfterStayOf(1'000'000'000'000), 16);
}

TEST(AdaptivePolicy, TheTimeOfFaultsInTheCacheDoesNotShortenStays) {
  Thread thread;
  thread.policy.CountCacheFault(1'000'000'000);
  EXPECT_EQ(thread.StintAfterStayOf(1'000'000'000), kShortest);
}

TEST(AdaptivePolicy, AStayThatIsAskedForIsNotShortened) {
  Thread thread(700);
  EXPECT_EQ(thread.StintAfterStayOf(1'000'000'000'000), 700);
}

TEST(AdaptivePolicy, StartForgetsPatience) {
  Thread thread;
  for (int i = 0; i < 20; ++i) thread.Stint(kTooShort);
  EXPECT_EQ(thread.policy.Start(thread.now, 0), kFirst / 2);
  EXPECT_EQ(thread.Stint(kTooShort), 2 * kShortest);
}

TEST(AdaptivePolicy, WhoStartsOverAndOverIsCheckedForLessEachTime) {
  Thread thread;
  EXPECT_EQ(thread.first, kFirst);
  for (std::int64_t first = kFirst / 2; first > kShortest; first /= 2)
    EXPECT_EQ(thread.policy.Start(thread.now, 0), first);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(thread.policy.Start(thread.now, 0), kShortest);
  Thread asked(5'000);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(asked.policy.Start(asked.now, 5'000), 5'000);
}

TEST(AdaptivePolicy, WhoGoesOnWithWhatOthersDidIsCheckedForLess) {
  const auto first = [](unsigned generation) {
    return AdaptivePolicy(kExit, generation).Start(0, 0);
  };
  EXPECT_EQ(first(0), kFirst);
  EXPECT_EQ(first(1), kFirst / 2);
  EXPECT_EQ(first(3), kFirst / 8);
  EXPECT_EQ(first(100), kFirst / 8);
  EXPECT_EQ(AdaptivePolicy(kExit, 3).Start(0, 5'000), 5'000);
}

TEST(AdaptivePolicy, ExitsInAStintAreALoss) {
  // Useful: the stint but for the exit, 7,500 ns, many times over. Lost: the exit's handling, and
  // two exits by themselves.
  constexpr std::uint64_t kHandling = 7'500 * kGain - 2 * kExit;
  Thread pays, does_not;
  pays.BeginStint();
  pays.Exit(1'000, kHandling);
  EXPECT_EQ(pays.EndStint(6'500 + kExit), kShortest);
  does_not.BeginStint();
  does_not.Exit(1'000, kHandling);
  EXPECT_EQ(does_not.EndStint(6'499 + kExit), 2 * kShortest);
}

TEST(AdaptivePolicy, ExitsOfEarlierStintsDoNotMatter) {
  Thread thread;
  thread.BeginStint();
  thread.Exit(1'000, 1'000'000'000);
  EXPECT_EQ(thread.EndStint(1'000), 2 * kShortest);
  EXPECT_EQ(thread.Stint(kLongEnough), kShortest);
}

TEST(AdaptivePolicy, FaultsInTheCacheAreALossOfTheNextStintAlone) {
  Thread thread;
  thread.policy.CountCacheFault(1'000'000);
  EXPECT_EQ(thread.Stint((1'000'000 + 2 * kExit) / kGain - 1), 2 * kShortest);
  EXPECT_EQ(thread.Stint(kLongEnough), kShortest);
}

TEST(AdaptivePolicy, HiddenPagesThatWereUsedAreALossAndNoUse) {
  // Three exits and the last one are lost; the three take their time from the stint.
  Thread pays, does_not;
  pays.BeginStint();
  EXPECT_EQ(pays.EndStint(4 * kExit / kGain + 3 * kExit, 3), kShortest);
  does_not.BeginStint();
  EXPECT_EQ(does_not.EndStint(4 * kExit / kGain + 3 * kExit - 1, 3), 2 * kShortest);
}

TEST(AdaptivePolicy, AStintWithoutAnExitBeforeIsOfNoUse) {
  // An exit that began before the stint is none of its own.
  Thread thread;
  thread.Stint(kLongEnough);
  thread.now += 1'000'000;
  thread.BeginStint();
  EXPECT_EQ(thread.policy.EndStint(thread.now, 0), 2 * kShortest);
}

TEST(AdaptivePolicy, ToGoInAndOutIsNoUse) {
  Thread thread;
  EXPECT_EQ(thread.Stint(0), 2 * kShortest);
  EXPECT_EQ(thread.Stint(0), 4 * kShortest);
}

TEST(AdaptivePolicy, StintBeganIsWhenItBegan) {
  Thread thread;
  thread.BeginStint();
  const std::uint64_t then = thread.now;
  thread.EndStint(1'000);
  EXPECT_EQ(thread.policy.stint_began(), then);
}

TEST(AdaptivePolicy, WeightIsZeroUpToThreeQuartersOfRepeats) {
  EXPECT_EQ(AdaptivePolicy(kExit).WeightOfRepeats(), 0);
  EXPECT_EQ(Thread().WeightAfter(0), 0);
  EXPECT_EQ(Thread().WeightAfter(kFirst * 3 / 4), 0);
}

TEST(AdaptivePolicy, WeightGrowsWithRepeats) {
  EXPECT_EQ(Thread().WeightAfter(kFirst * 13 / 16), 0.5);
}

TEST(AdaptivePolicy, WeightIsOneFromSevenEighthsOfRepeatsOn) {
  EXPECT_EQ(Thread().WeightAfter(kFirst * 7 / 8), 1);
  EXPECT_EQ(Thread().WeightAfter(kFirst), 1);
}

TEST(AdaptivePolicy, WeightIsOfSeveralStays) {
  Thread thread;
  EXPECT_EQ(thread.WeightAfter(kFirst), 1);
  EXPECT_EQ(thread.EndStint(kAlwaysPays), kShortest);
  EXPECT_EQ(thread.WeightAfter(0), 1) << "30,720 of 31,232: the first stay's less by a sixteenth";
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(thread.EndStint(kAlwaysPays), kShortest);
    thread.WeightAfter(0);
  }
  EXPECT_EQ(thread.policy.WeightOfRepeats(), 0);
}

// The repeats of a forked child are counted from 0 on.
TEST(AdaptivePolicy, RepeatsMayBeCountedAnew) {
  Thread thread;
  thread.WeightAfter(kFirst);
  thread.repeats = 0;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(thread.EndStint(kAlwaysPays), kShortest);
    EXPECT_EQ(thread.WeightAfter(kShortest), 1);
  }
}

TEST(AdaptivePolicy, RepeatsShortenWhatCountsAsUseful) {
  // All of the first 400 us is lost then, and the rest counts for less.
  constexpr std::uint64_t kRefill = 400'000;
  Thread pays, does_not;
  pays.repeats = does_not.repeats = kFirst;
  EXPECT_EQ(pays.Stint(kRefill + kExit / kGainOverRepeats), kShortest);
  EXPECT_EQ(does_not.Stint(kRefill + kExit / kGainOverRepeats - 1), 2 * kShortest);
}

// Stays are long once native code has not paid for some time, until it does again.
TEST(AdaptivePolicy, StaysBecomeLong) {
  Thread thread;
  unsigned stints = 0;
  while (!thread.policy.stays_long()) {
    ASSERT_LE(thread.Stint(kTooShort), 8192);
    ASSERT_LT(++stints, 6u);
  }
  EXPECT_EQ(stints, 4u);
  for (stints = 0; thread.policy.stays_long(); ++stints) thread.Stint(kAlwaysPays);
  EXPECT_EQ(stints, 1u);
}

TEST(AdaptivePolicy, LongStaysAreInPartialCode) {
  Thread thread;
  while (!thread.policy.stays_long()) {
    EXPECT_FALSE(thread.policy.prefers_partial());
    thread.Stint(kTooShort);
  }
  EXPECT_TRUE(thread.policy.prefers_partial());
}

// Where 512 accesses take more than 1 ms, and natively the thread is for less than a stay takes.
TEST(AdaptivePolicy, StaysInWhichLittleIsToldAreInPartialCode) {
  constexpr std::uint64_t kSlow = kFirst / kShortest * std::uint64_t{1'000'000};
  const auto prefers = [](std::uint64_t stay, std::uint64_t stint, std::uint32_t hot_after = 0) {
    Thread thread(hot_after);
    thread.now += stay;
    thread.Stint(stint - kExit);
    return thread.policy.prefers_partial();
  };
  EXPECT_TRUE(prefers(kSlow, kSlow));
  EXPECT_FALSE(prefers(kSlow - 1000, kSlow - 1000)) << "told of as fast as most code does";
  EXPECT_FALSE(prefers(kSlow, kSlow + 1)) << "natively most of the time";
  EXPECT_FALSE(prefers(kSlow, kSlow, kFirst)) << "how long stays are has been asked for";
}

}  // namespace
}  // namespace trapline
