// AccuLock against its paper: Figure 1 (a) to (d) in all interleavings, Figure 3.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "tests/detector/trace_builder.h"
#include "tests/support/reference.h"
#include "tests/support/trace_generator.h"

namespace trapline {
namespace {

constexpr std::uint64_t kX = 0x1000;
constexpr std::uint64_t kChannel = 0x2000;
constexpr std::uint64_t kL1 = 0x100;
constexpr std::uint64_t kL2 = 0x200;
constexpr std::uint64_t kA = 0xa;  // the instructions that the figure calls A and B
constexpr std::uint64_t kB = 0xb;

using Program = std::vector<std::vector<Event>>;  // events of T1, T2, ...

// Calls visit(trace) for all interleavings that the locks allow, each after T0 has started all
// threads.
void ForAllInterleavings(const Program& program,
                         const std::function<void(const std::vector<Event>&)>& visit) {
  std::vector<Event> trace;
  for (ThreadId t = 1; t <= program.size(); ++t) trace.push_back(Fork(0, t));
  std::vector<std::size_t> next(program.size(), 0);
  const std::function<void()> extend = [&] {
    bool complete = true;
    for (std::size_t t = 0; t < program.size(); ++t) {
      if (next[t] == program[t].size()) continue;
      complete = false;
      trace.push_back(program[t][next[t]]);
      if (IsWellFormed(trace)) {
        ++next[t];
        extend();
        --next[t];
      }
      trace.pop_back();
    }
    if (complete) visit(trace);
  };
  extend();
}

bool ReportsAOrB(std::string_view detector, const std::vector<Event>& trace) {
  const auto run = RunOn(detector, trace);
  for (const Race& race : run->races()) {
    if ((race.first.ip == kA && race.second.ip == kB) ||
        (race.first.ip == kB && race.second.ip == kA)) {
      return true;
    }
  }
  return false;
}

bool ReportsX(std::string_view detector, const std::vector<Event>& trace) {
  return FirstRaces(*RunOn(detector, trace)).contains(kX);
}

struct Verdicts {
  int interleavings = 0;
  int acculock = 0;
  int fasttrack = 0;
};

Verdicts Judge(const Program& program) {
  Verdicts verdicts;
  ForAllInterleavings(program, [&](const std::vector<Event>& trace) {
    ++verdicts.interleavings;
    verdicts.acculock += ReportsAOrB("acculock", trace);
    verdicts.fasttrack += ReportsAOrB("fasttrack", trace);
    EXPECT_GE(ReportsX("acculock", trace), ReportsX("fasttrack", trace)) << PrintTrace(trace);
  });
  return verdicts;
}

TEST(AccuLock, Figure1aIsAlwaysReported) {
  const Program program{
      {Read(1, kX, 8, kA), Acquire(1, kL1), Read(1, kX, 8, 1), Release(1, kL1)},
      {Acquire(2, kL1), Write(2, kX, 8, kB), Release(2, kL1)},
  };
  const Verdicts verdicts = Judge(program);
  EXPECT_GT(verdicts.interleavings, 2);
  EXPECT_EQ(verdicts.acculock, verdicts.interleavings);
  EXPECT_GT(verdicts.fasttrack, 0);
  EXPECT_LT(verdicts.fasttrack, verdicts.interleavings);
}

TEST(AccuLock, Figure1aDependsOnLockOrderForFastTrack) {
  const std::vector<Event> t1_first{Fork(0, 1),      Fork(0, 2),          Read(1, kX, 8, kA),
                                    Acquire(1, kL1), Read(1, kX, 8, 1),   Release(1, kL1),
                                    Acquire(2, kL1), Write(2, kX, 8, kB), Release(2, kL1)};
  EXPECT_FALSE(ReportsX("fasttrack", t1_first));
  EXPECT_TRUE(ReportsX("acculock", t1_first));
}

TEST(AccuLock, Figure1bIsAlwaysReported) {
  const Program program{
      {Acquire(1, kL2), Read(1, kX, 8, kA), Release(1, kL2)},
      {Acquire(2, kL1), Acquire(2, kL2), Read(2, kX, 8, 2), Release(2, kL2), Release(2, kL1)},
      {Acquire(3, kL1), Write(3, kX, 8, kB), Release(3, kL1)},
  };
  const Verdicts verdicts = Judge(program);
  EXPECT_GT(verdicts.interleavings, 6);
  EXPECT_EQ(verdicts.acculock, verdicts.interleavings);
  EXPECT_LT(verdicts.fasttrack, verdicts.interleavings);
}

// Of the six orders of whole threads, FastTrack misses exactly T1, T2, T3 and T3, T2, T1.
TEST(AccuLock, Figure1bForFastTrack) {
  const Program program{
      {Acquire(1, kL2), Read(1, kX, 8, kA), Release(1, kL2)},
      {Acquire(2, kL1), Acquire(2, kL2), Read(2, kX, 8, 2), Release(2, kL2), Release(2, kL1)},
      {Acquire(3, kL1), Write(3, kX, 8, kB), Release(3, kL1)},
  };
  std::vector<int> order{0, 1, 2};
  do {
    std::vector<Event> trace{Fork(0, 1), Fork(0, 2), Fork(0, 3)};
    for (const int t : order) trace.insert(trace.end(), program[t].begin(), program[t].end());
    const bool missed = order == std::vector<int>{0, 1, 2} || order == std::vector<int>{2, 1, 0};
    EXPECT_EQ(ReportsAOrB("fasttrack", trace), !missed) << PrintTrace(trace);
    EXPECT_TRUE(ReportsAOrB("acculock", trace)) << PrintTrace(trace);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(AccuLock, Figure1cIsReportedExactlyWhenFastTrackDoes) {
  const Program program{
      {Acquire(1, kL2), Read(1, kX, 8, kA), Release(1, kL2), Acquire(1, kL1), Read(1, kX, 8, 1),
       Release(1, kL1)},
      {Acquire(2, kL1), Write(2, kX, 8, kB), Release(2, kL1)},
  };
  int reported = 0;
  int interleavings = 0;
  ForAllInterleavings(program, [&](const std::vector<Event>& trace) {
    ++interleavings;
    const bool fasttrack = ReportsAOrB("fasttrack", trace);
    EXPECT_EQ(ReportsAOrB("acculock", trace), fasttrack) << PrintTrace(trace);
    reported += fasttrack;
  });
  EXPECT_GT(reported, 0);
  EXPECT_LT(reported, interleavings);
}

// T2 processes what it took from the channel, so T1 has put it there before.
TEST(AccuLock, Figure1dIsAlwaysReportedAndNeverByFastTrack) {
  const Program program{
      {Write(1, kX, 8, kA), Acquire(1, kL1), Write(1, kChannel), Release(1, kL1)},
      {Acquire(2, kL1), Read(2, kChannel), Release(2, kL1), Write(2, kX, 8, kB)},
  };
  int interleavings = 0;
  ForAllInterleavings(program, [&](const std::vector<Event>& trace) {
    std::size_t put = 0;
    std::size_t taken = 0;
    for (std::size_t i = 0; i < trace.size(); ++i) {
      if (trace[i].address != kChannel) continue;
      (trace[i].kind == EventKind::kWrite ? put : taken) = i;
    }
    if (put > taken) return;
    ++interleavings;
    EXPECT_TRUE(ReportsAOrB("acculock", trace)) << PrintTrace(trace);
    EXPECT_TRUE(RunOn("fasttrack", trace)->races().empty()) << PrintTrace(trace);
  });
  EXPECT_GT(interleavings, 0);
}

// The false warning that intersecting the locksets of all concurrent writes costs.
TEST(AccuLock, Figure3WarnsFalsely) {
  const std::vector<Event> trace{
      Fork(0, 1),      Fork(0, 2),         Acquire(1, kL2),     Write(1, kX, 8, 1), Release(1, kL2),
      Acquire(2, kL1), Acquire(2, kL2),    Write(2, kX, 8, kB), Release(2, kL2),    Release(2, kL1),
      Acquire(1, kL1), Read(1, kX, 8, kA), Release(1, kL1)};
  EXPECT_TRUE(ReportsAOrB("acculock", trace));
  EXPECT_TRUE(RunOn("fasttrack", trace)->races().empty());
  EXPECT_FALSE(ReportsAOrB("hybrid", trace));
}

}  // namespace
}  // namespace trapline
