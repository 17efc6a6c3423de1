// TREE against its thesis: Figure 3.4, what it drops and what it may lose.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "detector/tree_filter.h"
#include "tests/detector/trace_builder.h"
#include "tests/support/reference.h"

namespace trapline {
namespace {

constexpr std::uint64_t kX = 0x1000;

std::uint64_t Lock(int i) { return 0x100 + 8 * static_cast<std::uint64_t>(i); }

// The serialised trace of Figure 3.4b; the instruction of an access is the number of its location.
std::vector<Event> Figure34() {
  std::vector<Event> trace;
  for (ThreadId t = 1; t <= 3; ++t) trace.push_back(Fork(0, t));
  for (int i = 1; i <= 3; ++i) {
    trace.push_back(Acquire(0, Lock(i)));
    trace.push_back(Write(0, kX, 8, 1));
    trace.push_back(Release(0, Lock(i)));
    trace.push_back(Read(0, kX, 8, 2));
  }
  for (ThreadId t = 1; t <= 3; ++t) {
    trace.push_back(Acquire(t, Lock(static_cast<int>(t))));
    trace.push_back(Write(t, kX, 8, 3));
    trace.push_back(Release(t, Lock(static_cast<int>(t))));
    trace.push_back(Write(t, kX, 8, 4));
  }
  return trace;
}

std::vector<Event> Filtered(const std::vector<Event>& trace, TreeMode mode,
                            std::vector<Event>* dropped = nullptr) {
  TreeFilter filter(MakeDetector("empty"), mode);
  std::vector<Event> rest;
  for (const Event& event : trace) {
    if (!filter.IsRedundant(event)) {
      rest.push_back(event);
    } else if (dropped != nullptr) {
      dropped->push_back(event);
    }
  }
  return rest;
}

// By definition (unordered but for locks, no common lock) the trace has 45 racing pairs between 7
// pairs of locations. The thesis speaks of 27 and 6: its enumeration starts with the 27 pairs of T0
// with another thread in which the other or T0 itself holds no lock (2,3), (2,4), (1,4), goes on
// with pairs it does not count, and leaves out the location pair (3,4), a locked write of one
// thread with an unlocked one of another.
TEST(Tree, Figure34HasItsRaces) {
  const std::vector<Event> trace = Figure34();
  const ReferenceRaces races = FindRaces(trace, ReferenceOrder::kWithoutLockEdges);
  using Locations = std::set<std::pair<std::uint64_t, std::uint64_t>>;
  Locations listed{{2, 3}, {2, 4}, {1, 4}, {1, 3}, {3, 3}, {4, 4}};
  EXPECT_EQ(listed.size(), 6U);
  EXPECT_TRUE(
      std::includes(races.locations.begin(), races.locations.end(), listed.begin(), listed.end()));
  listed.insert({3, 4});
  EXPECT_EQ(races.locations, listed);

  const Locations counted{{2, 3}, {2, 4}, {1, 4}};
  const auto is_counted = [&](const auto& pair) {
    return counted.contains(std::minmax(trace[pair.first].ip, trace[pair.second].ip));
  };
  EXPECT_EQ(std::count_if(races.pairs.begin(), races.pairs.end(), is_counted), 27);
  EXPECT_EQ(races.pairs.size(), 45U);
}

TEST(Tree, Figure34DropsTheThirdThreadAtLocation4) {
  std::vector<Event> dropped;
  const std::vector<Event> rest = Filtered(Figure34(), TreeMode::kThesis, &dropped);
  ASSERT_EQ(dropped.size(), 3U);
  EXPECT_EQ(dropped[0].ip, 2U);  // the second and third read of T0: intra-thread
  EXPECT_EQ(dropped[1].ip, 2U);
  EXPECT_EQ(dropped[2].ip, 4U);  // T3: inter-thread
  EXPECT_EQ(dropped[2].thread, 3U);
  EXPECT_EQ(FindRaces(rest, ReferenceOrder::kWithoutLockEdges).locations,
            FindRaces(Figure34(), ReferenceOrder::kWithoutLockEdges).locations);
}

TEST(Tree, SkippedShareIsAStatistic) {
  const auto detector = RunOn("tree+fasttrack", Figure34());
  EXPECT_EQ(detector->statistics().front(), (Statistic{"TREE: accesses skipped", 3, 12}));
  EXPECT_EQ(detector->name(), "tree+fasttrack");
}

// Why there is an exact mode: T1 and T2 stand for T3 at the write, but only they are joined.
TEST(Tree, ThesisLosesARaceWithAThreadThatIsNotJoined) {
  std::vector<Event> trace{Fork(0, 1), Fork(0, 2), Fork(0, 3)};
  for (ThreadId t = 1; t <= 3; ++t) trace.push_back(Write(t, kX + 8, 8, 1));
  trace.insert(trace.end(), {End(1), End(2), Join(0, 1), Join(0, 2), Write(0, kX + 8, 8, 2)});
  const auto order = ReferenceOrder::kHappensBefore;
  const std::pair<std::uint64_t, std::uint64_t> lost{1, 2};
  EXPECT_TRUE(FindRaces(trace, order).locations.contains(lost));
  EXPECT_FALSE(FindRaces(Filtered(trace, TreeMode::kThesis), order).locations.contains(lost));
  EXPECT_TRUE(FindRaces(Filtered(trace, TreeMode::kExact), order).locations.contains(lost));
}

// And the second reason: between two equivalent accesses the lock may have ordered another thread.
TEST(Tree, ThesisLosesARaceThatOnlyLockEdgesTellApart) {
  const std::uint64_t lock = Lock(1);
  const std::vector<Event> trace{Fork(0, 1),         Acquire(0, lock), Write(0, kX, 8, 1),
                                 Release(0, lock),   Acquire(1, lock), Release(1, lock),
                                 Write(1, kX, 8, 2), Acquire(0, lock), Release(0, lock)};
  // T0's write happens before T1's, by the lock; a second one in the same context does not.
  std::vector<Event> with_second{
      Fork(0, 1),       Acquire(0, lock), Write(0, kX, 8, 1), Release(0, lock), Acquire(1, lock),
      Release(1, lock), Acquire(0, lock), Write(0, kX, 8, 1), Release(0, lock), Write(1, kX, 8, 2)};
  const auto order = ReferenceOrder::kHappensBefore;
  EXPECT_TRUE(FindRaces(trace, order).locations.empty());
  EXPECT_FALSE(FindRaces(with_second, order).locations.empty());
  EXPECT_TRUE(FindRaces(Filtered(with_second, TreeMode::kThesis), order).locations.empty());
  EXPECT_FALSE(FindRaces(Filtered(with_second, TreeMode::kExact), order).locations.empty());
}

TEST(Tree, FreshMemoryIsNotRedundant) {
  const std::vector<Event> trace{Fork(0, 1), Write(0, kX, 8, 1), Clear(0, kX, 8),
                                 Write(0, kX, 8, 1), Write(1, kX, 8, 2)};
  for (const char* name : {"tree+fasttrack", "tree-spans+fasttrack", "tree-exact+fasttrack"}) {
    EXPECT_EQ(RunOn(name, trace)->race_count(), 1U) << name;
  }
}

// Figure 3.7: a write to each element in an outer loop of five rounds, from two instructions.
TEST(Tree, SpansDropOtherInstructionsToo) {
  std::vector<Event> trace{Fork(0, 1)};
  for (int round = 0; round < 5; ++round) {
    for (std::uint64_t j = 0; j < 10; ++j) {
      trace.push_back(Write(0, kX + 8 * j, 8, 1));
      trace.push_back(Write(0, kX + 8 * j, 8, 2));
    }
  }
  EXPECT_EQ(Filtered(trace, TreeMode::kThesis).size(), 1U + 20U);
  EXPECT_EQ(Filtered(trace, TreeMode::kSpans).size(), 1U + 10U);
}

TEST(Tree, AnOutgoingEdgeEndsASpan) {
  const std::vector<Event> trace{Write(0, kX, 8, 1), Acquire(0, Lock(1)), Release(0, Lock(1)),
                                 Write(0, kX, 8, 2)};
  EXPECT_EQ(Filtered(trace, TreeMode::kSpans).size(), 4U);
}

}  // namespace
}  // namespace trapline
