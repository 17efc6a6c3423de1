// The parts that detectors share, each against a plain twin.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "detector/access_places.h"
#include "detector/barrier_rounds.h"
#include "detector/block_pool.h"
#include "detector/cell_pool.h"
#include "detector/chunked_array.h"
#include "detector/ended_clocks.h"
#include "detector/lockset.h"
#include "detector/moment_atomics.h"
#include "detector/moment_clocks.h"
#include "detector/moment_history.h"
#include "detector/page_index.h"
#include "detector/reader_list.h"
#include "detector/record_history.h"
#include "detector/runtime_scopes.h"
#include "detector/shadow_memory.h"
#include "detector/slab_pool.h"
#include "detector/synchronisation.h"
#include "detector/vector_clock.h"
#include "tests/detector/trace_builder.h"

namespace trapline {
namespace {

TEST(EpochTest, PacksThreadAndClock) {
  for (const ThreadId thread : {0U, 1U, 77U, kMaxThreads - 1}) {
    for (const Clock clock : {Clock{0}, Clock{1}, (Clock{1} << 40) - 1}) {
      const Epoch epoch(thread, clock);
      EXPECT_EQ(epoch.thread(), thread);
      EXPECT_EQ(epoch.clock(), clock);
      EXPECT_EQ(epoch.empty(), clock == 0);
    }
  }
}

TEST(VectorClockTest, AgreesWithAMap) {
  std::mt19937_64 random(7);
  std::vector<VectorClock> clocks(4);
  std::vector<std::map<ThreadId, Clock>> twins(4);
  const auto value = [](std::map<ThreadId, Clock>& twin, ThreadId t) {
    return twin.contains(t) ? twin[t] : 0;
  };
  for (int step = 0; step < 20000; ++step) {
    const std::size_t a = random() % 4;
    const std::size_t b = random() % 4;
    const auto t = static_cast<ThreadId>(random() % 20);
    switch (random() % 8) {
      case 0:
        clocks[a] = clocks[b];
        twins[a] = twins[b];
        break;
      case 1:
        clocks[a].Join(clocks[b]);
        for (const auto& [thread, clock] : std::map<ThreadId, Clock>(twins[b])) {
          twins[a][thread] = std::max(value(twins[a], thread), clock);
        }
        break;
      case 2:
        clocks[a].Clear();
        twins[a].clear();
        break;
      default:
        clocks[a].Increment(t);
        ++twins[a][t];
        break;
    }
    bool covers = true;
    for (ThreadId u = 0; u < 20; ++u) {
      ASSERT_EQ(clocks[a][u], value(twins[a], u));
      covers &= value(twins[b], u) <= value(twins[a], u);
      ASSERT_EQ(clocks[b].Covers(Epoch(u, 3)), value(twins[b], u) >= 3);
    }
    ASSERT_EQ(clocks[a].Covers(clocks[b]), covers);
  }
}

TEST(LocksetTest, AgreesWithSets) {
  std::mt19937_64 random(11);
  LocksetTable table;
  std::vector<std::pair<LocksetId, std::set<LockId>>> sets{{kEmptyLockset, {}}};
  for (int step = 0; step < 5000; ++step) {
    const auto a = sets[random() % sets.size()];
    const auto b = sets[random() % sets.size()];
    const LockId lock = 1 + random() % 6;
    auto with = a.second;
    with.insert(lock);
    auto without = a.second;
    without.erase(lock);
    std::set<LockId> common;
    for (const LockId l : a.second) {
      if (b.second.contains(l)) common.insert(l);
    }
    sets.emplace_back(table.Add(a.first, lock), with);
    sets.emplace_back(table.Remove(a.first, lock), without);
    ASSERT_EQ(table.Disjoint(a.first, b.first), common.empty());
    ASSERT_EQ(table.IsSubset(a.first, b.first), common == a.second);
    sets.emplace_back(table.Intersect(a.first, b.first), common);
    for (const auto& [id, set] : {sets.end()[-1], sets.end()[-2], sets.end()[-3]}) {
      const auto locks = table.Locks(id);
      ASSERT_EQ(std::set<LockId>(locks.begin(), locks.end()), set);
    }
    if (sets.size() > 64) sets.erase(sets.begin() + 1, sets.begin() + 32);
  }
}

// By the definition: a lock by either side, exclusive or shared.
TEST(LocksetTest, SharedSidesProtectFromExclusiveOnesOnly) {
  std::mt19937_64 random(12);
  LocksetTable table;
  using Sides = std::map<LockId, bool>;  // whether exclusive
  std::vector<std::pair<LocksetId, Sides>> sets{{kEmptyLockset, {}}};
  for (int step = 0; step < 5000; ++step) {
    const auto [a, in_a] = sets[random() % sets.size()];
    const auto [b, in_b] = sets[random() % sets.size()];
    Sides common;
    bool disjoint = true, subset = true;
    for (const auto& [lock, exclusive] : in_a) {
      const auto other = in_b.find(lock);
      subset = subset && other != in_b.end() && (other->second || !exclusive);
      if (other == in_b.end()) continue;
      common[lock] = exclusive && other->second;
      disjoint = disjoint && !exclusive && !other->second;
    }
    ASSERT_EQ(table.Disjoint(a, b), disjoint);
    ASSERT_EQ(table.IsSubset(a, b), subset);
    const auto add = [&](const Sides& sides) {
      LocksetId id = kEmptyLockset;
      for (const auto& [lock, exclusive] : sides)
        id = table.Add(id, exclusive ? lock : SharedSideOf(lock));
      sets.emplace_back(id, sides);
      return id;
    };
    ASSERT_EQ(add(common), table.Intersect(a, b));
    Sides with = in_a;
    with[1 + random() % 6] = random() % 2 == 0;
    add(with);
    if (sets.size() > 64) sets.erase(sets.begin() + 1, sets.begin() + 32);
  }
}

// A cell that says what was done to its bytes; without and with merging, and parts of words.
struct History {
  std::vector<int> steps;
};
struct MergingHistory {
  std::vector<int> steps;
  bool HasHistoryOf(const MergingHistory& other) const { return steps == other.steps; }
};
struct SparseHistory {
  std::vector<int> steps;
  bool empty() const { return steps.empty(); }
  bool HasHistoryOf(const SparseHistory& other) const { return steps == other.steps; }
};

// Notices if what is no cell is taken for one.
struct CheckedHistory {
  CheckedHistory() = default;
  CheckedHistory(const CheckedHistory& other) : steps(other.steps) { other.Check(); }
  CheckedHistory& operator=(const CheckedHistory& other) {
    Check();
    other.Check();
    if (this != &other) steps = other.steps;
    return *this;
  }
  ~CheckedHistory() {
    Check();
    self = nullptr;
  }
  void Check() const { EXPECT_EQ(self, this); }
  bool empty() const {
    Check();
    return steps.empty();
  }
  bool HasHistoryOf(const CheckedHistory& other) const {
    Check();
    other.Check();
    return steps == other.steps;
  }

  const CheckedHistory* self = this;
  std::vector<int> steps;
};

template <class Cell>
void CompareShadowWithMap(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  ShadowMemory<Cell> shadow;
  std::map<std::uint64_t, std::vector<int>> twin;
  // Around the ends of a page and of a region.
  const auto address = [&] {
    return (random() % 2 == 0 ? 0x3000000ULL : 0x5001000ULL) - 32 + random() % 64;
  };
  for (int step = 0; step < 3000; ++step) {
    const std::uint64_t at = address();
    static constexpr std::uint64_t kSizes[] = {1, 2, 4, 4, 8, 8, 8, 16, 24, 72, 144, 9000};
    std::uint64_t size = kSizes[random() % 11 + (random() % 64 == 0)];
    const std::uint64_t aligned = size <= 8 && random() % 4 != 0 ? at / size * size : at;
    if constexpr (requires(const Cell& cell) { cell.empty(); }) {
      if (random() % 8 == 0)
        shadow.Condense([](const Cell& a, const Cell& b) { return a.steps == b.steps; });
    }
    switch (random() % 12) {
      case 0:
        if (random() % 16 == 0) size = 20000;
        shadow.Clear(at, size);
        for (std::uint64_t b = at; b < at + size; ++b) twin.erase(b);
        break;
      case 1: {
        const std::uint64_t from = address();
        shadow.Copy(at, from, size);
        const auto old = twin;
        for (std::uint64_t b = 0; b < size; ++b) {
          twin.erase(at + b);
          if (old.contains(from + b)) twin[at + b] = old.at(from + b);
        }
        break;
      }
      default: {
        std::uint64_t expected = aligned;
        const bool short_history = random() % 3 == 0;
        const auto visit = [&](Cell& cell, std::uint64_t a, std::uint64_t s) {
          ASSERT_EQ(a, expected);
          expected = a + s;
          if (short_history) cell.steps.clear();
          cell.steps.push_back(step);
        };
        if (Cell* cell = shadow.FindExact(aligned, size)) {
          visit(*cell, aligned, size);
        } else {
          shadow.ForEach(aligned, size, visit);
        }
        ASSERT_EQ(expected, aligned + size);
        for (std::uint64_t b = aligned; b < aligned + size; ++b) {
          if (short_history) twin[b].clear();
          twin[b].push_back(step);
        }
        break;
      }
    }
    if (step % 4 != 3) continue;          // to compare takes longer than all else
    constexpr std::uint64_t kSeen = 256;  // bytes; few accesses end beyond
    for (const std::uint64_t base : {0x3000000ULL - 64, 0x5001000ULL - 64}) {
      std::map<std::uint64_t, std::vector<int>> seen;
      shadow.ForEachExisting(base, kSeen, [&](Cell& cell, std::uint64_t a, std::uint64_t s) {
        for (std::uint64_t b = a; b < a + s; ++b) {
          if (!cell.steps.empty()) seen[b] = cell.steps;
        }
      });
      for (std::uint64_t b = base; b < base + kSeen; ++b) {
        const auto expected = twin.contains(b) ? twin[b] : std::vector<int>{};
        ASSERT_EQ(seen.contains(b) ? seen[b] : std::vector<int>{}, expected)
            << "seed " << seed << " step " << step << " byte " << std::hex << b;
      }
    }
  }
}

TEST(ShadowMemoryTest, AgreesWithAMapOfBytes) {
#ifdef __OPTIMIZE__
  constexpr std::uint64_t kSeeds = 6;
#else
  constexpr std::uint64_t kSeeds = 1;  // each 12 s, under a sanitizer
#endif
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CompareShadowWithMap<History>(seed);
    CompareShadowWithMap<MergingHistory>(seed);
    CompareShadowWithMap<SparseHistory>(seed);
    CompareShadowWithMap<CheckedHistory>(seed);
  }
}

TEST(ShadowMemoryTest, BytesThatAloneAreAccessedHaveOneCell) {
  ShadowMemory<SparseHistory> shadow;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> cells;
  const auto visit = [&](SparseHistory& cell, std::uint64_t address, std::uint64_t size) {
    cell.steps.push_back(1);
    cells.emplace_back(address, size);
  };
  const auto cells_of = [&](std::uint64_t address, std::uint64_t size) {
    cells.clear();
    shadow.ForEach(address, size, visit);
    return cells;
  };
  using Cells = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  EXPECT_EQ(cells_of(0x1001, 3), (Cells{{0x1001, 3}}));
  EXPECT_EQ(shadow.FindExact(0x1001, 3)->steps.size(), 1U);
  EXPECT_EQ(shadow.FindExact(0x1001, 4), nullptr);
  EXPECT_EQ(shadow.FindExact(0x1001, 1), nullptr);
  // Sizes that would not fit into a part's description.
  EXPECT_EQ(shadow.FindExact(0x1000, 0x14), nullptr);
  shadow.Clear(0x1004, 4);
  EXPECT_EQ(cells_of(0x1001, 3), (Cells{{0x1001, 3}}));
  shadow.Clear(0x1000, 4);
  EXPECT_EQ(cells_of(0x1000, 2), (Cells{{0x1000, 2}}));
  EXPECT_EQ(cells_of(0x1001, 2), (Cells{{0x1001, 1}, {0x1002, 1}}));
  EXPECT_EQ(shadow.FindExact(0x1000, 1)->steps.size(), 1U);
  EXPECT_EQ(shadow.FindExact(0x1001, 1)->steps.size(), 2U);
  EXPECT_EQ(shadow.FindExact(0x1021, ~std::uint64_t{0}), nullptr);
  // Halves, one after the other.
  EXPECT_EQ(cells_of(0x1014, 4), (Cells{{0x1014, 4}}));
  EXPECT_EQ(cells_of(0x1010, 4), (Cells{{0x1010, 4}}));
  EXPECT_EQ(cells_of(0x1010, 8), (Cells{{0x1010, 4}, {0x1014, 4}}));
  EXPECT_EQ(shadow.FindExact(0x1010, 8)->steps.size(), 2U);  // the same history again
  // Beside a part no two words are one access.
  EXPECT_EQ(cells_of(0x1024, 4), (Cells{{0x1024, 4}}));
  EXPECT_EQ(cells_of(0x1028, 8), (Cells{{0x1028, 8}}));
  const auto* const line = shadow.FindLine(0x1020);
  EXPECT_EQ(shadow.FindCells(line, 0x1020, 16), nullptr);
  EXPECT_EQ(shadow.PrefetchCells(line, 0x1020, 16), nullptr);
  EXPECT_EQ(shadow.PrefetchCells(line, 0x1024, 4)->steps.size(), 1U);
  EXPECT_EQ(shadow.PrefetchCells(line, 0x1020, 8), nullptr);
  EXPECT_NE(shadow.FindCells(line, 0x1030, 16), nullptr);
}

TEST(ShadowMemoryTest, ABlockThatGrowsKeepsTheCellsOfBytes) {
  ShadowMemory<CheckedHistory> shadow;
  const auto touch = [&](std::uint64_t address, std::uint64_t size, int step) {
    shadow.ForEach(address, size, [&](CheckedHistory& cell, std::uint64_t, std::uint64_t) {
      cell.steps.push_back(step);
    });
  };
  touch(0x1000, 8, 1);
  touch(0x1001, 1, 2);
  touch(0x1008, 8, 3);
  const auto version = shadow.cells_version();
  touch(0x100c, 4, 4);  // the first half of a word
  EXPECT_NE(shadow.cells_version(), version);
  EXPECT_EQ(shadow.FindExact(0x1000, 1)->steps, std::vector<int>{1});
  EXPECT_EQ(shadow.FindExact(0x1001, 1)->steps, (std::vector<int>{1, 2}));
  EXPECT_EQ(shadow.FindExact(0x1008, 4)->steps, std::vector<int>{3});
  EXPECT_EQ(shadow.FindExact(0x100c, 4)->steps, (std::vector<int>{3, 4}));
}

TEST(ShadowMemoryTest, HalvesOfLinesAreForgotten) {
  ShadowMemory<CheckedHistory> shadow;
  const auto touch = [&](std::uint64_t address, std::uint64_t size, int step) {
    shadow.ForEach(address, size, [&](CheckedHistory& cell, std::uint64_t, std::uint64_t) {
      cell.steps = {step};
    });
  };
  for (std::uint64_t at = 0x1000; at < 0x1040; at += 8) touch(at, 8, 1);
  touch(0x1001, 1, 1);
  touch(0x103c, 4, 2);
  touch(0x2000, 8, 1);
  shadow.Forget([](const CheckedHistory& cell) { return cell.empty() || cell.steps.front() == 1; });
  EXPECT_EQ(shadow.FindExact(0x1000, 1), nullptr);
  EXPECT_EQ(shadow.FindExact(0x1018, 8), nullptr);
  EXPECT_EQ(shadow.FindExact(0x1020, 8)->steps, std::vector<int>{1});
  EXPECT_EQ(shadow.FindExact(0x103c, 4)->steps, std::vector<int>{2});
  EXPECT_EQ(shadow.FindLine(0x2000), nullptr);
  touch(0x1000, 8, 3);
  EXPECT_EQ(shadow.FindExact(0x1000, 8)->steps, std::vector<int>{3});
}

TEST(ShadowMemoryTest, LikeNeighboursAreJoined) {
  ShadowMemory<SparseHistory> shadow;
  const auto touch = [&](std::uint64_t address, std::uint64_t size, int step) {
    unsigned cells = 0;
    shadow.ForEach(address, size, [&](SparseHistory& cell, std::uint64_t, std::uint64_t) {
      cell.steps.push_back(step);
      ++cells;
    });
    return cells;
  };
  const auto touch_words = [&](std::uint64_t address, std::uint64_t size, int step) {
    for (std::uint64_t at = address; at < address + size; at += 8) touch(at, 8, step);
  };
  const auto existing = [&](std::uint64_t address, std::uint64_t size) {
    std::map<std::uint64_t, std::uint64_t> cells;
    shadow.ForEachExisting(
        address, size,
        [&](SparseHistory&, std::uint64_t at, std::uint64_t length) { cells[at] = length; });
    return cells;
  };
  const auto equal = [](const SparseHistory& a, const SparseHistory& b) {
    return a.steps == b.steps;
  };
  // A line, and one of which a word differs.
  touch_words(0x1000, 128, 1);
  touch(0x1048, 8, 2);
  touch(0x1080, 4, 1);
  const std::uint64_t before = shadow.cell_bytes();
  shadow.Condense(equal);
  EXPECT_EQ(shadow.cell_bytes(), before / 5 * 3);  // one half of a line was not accessed
  ASSERT_NE(shadow.FindJoined(0x1020), nullptr);
  EXPECT_EQ(shadow.FindJoined(0x1040), nullptr);
  EXPECT_EQ(shadow.FindJoined(0x1080), nullptr);
  EXPECT_EQ(shadow.FindJoined(0x9000), nullptr);
  EXPECT_EQ(shadow.FindExact(0x1020, 8), nullptr);
  EXPECT_EQ(existing(0x1008, 16), (std::map<std::uint64_t, std::uint64_t>{{0x1008, 16}}));
  // Cut again by an access.
  const auto version = shadow.cells_version();
  EXPECT_EQ(touch(0x1020, 8, 3), 1U);
  EXPECT_EQ(shadow.FindJoined(0x1020), nullptr);
  EXPECT_EQ(shadow.FindExact(0x1018, 8)->steps, std::vector<int>{1});
  EXPECT_EQ(shadow.FindExact(0x1020, 8)->steps, (std::vector<int>{1, 3}));
  EXPECT_EQ(shadow.cells_version(), version);  // no cell was found before

  // Pages.
  touch_words(0x10000, 3 * 4096, 1);
  const auto lines_version = shadow.lines_version();
  shadow.Condense(equal);
  EXPECT_NE(shadow.lines_version(), lines_version);
  EXPECT_EQ(shadow.FindLine(0x11000), nullptr);
  ASSERT_NE(shadow.FindJoined(0x11ff8), nullptr);
  EXPECT_EQ(existing(0x10ff0, 4096 + 32), (std::map<std::uint64_t, std::uint64_t>{
                                              {0x10ff0, 16}, {0x11000, 4096}, {0x12000, 16}}));
  EXPECT_EQ(touch(0x11008, 8, 2), 1U);
  EXPECT_EQ(existing(0x11000, 4096).size(), 8U + 63);
  shadow.Clear(0x10800, 0x1000);
  EXPECT_EQ(existing(0x10000, 3 * 4096).size(), 32U + 32 + 1);
  EXPECT_EQ(touch(0x10000, 8192, 5), 128U);
  shadow.Copy(0x20010, 0x12000, 4096);
  EXPECT_EQ(shadow.FindExact(0x20010, 8)->steps, std::vector<int>{1});
  EXPECT_FALSE(shadow.empty());
  shadow.Clear(0, 0x12000);
  shadow.Clear(0x20000, 0x2000);
  EXPECT_FALSE(shadow.empty());
  shadow.Clear(0x12000, 4096);
  EXPECT_TRUE(shadow.empty());
}

TEST(ShadowMemoryTest, LinesOfLongAccessesHaveOneCell) {
  ShadowMemory<History> shadow;
  const auto cells_of = [&](std::uint64_t address, std::uint64_t size) {
    unsigned cells = 0;
    shadow.ForEach(address, size, [&](History& cell, std::uint64_t, std::uint64_t) {
      cell.steps.push_back(1);
      ++cells;
    });
    return cells;
  };
  EXPECT_EQ(cells_of(0x1000, 64), 8U);
  EXPECT_EQ(cells_of(0x1000, 4096), 8U + 63);
  EXPECT_EQ(cells_of(0x1048, 4), 1U);
  EXPECT_EQ(cells_of(0x1000, 4096), 8U + 9 + 62);
  EXPECT_EQ(cells_of(0x1008, 4096), 7U + 9 + 62 + 1);
  shadow.Clear(0x1084, 0x1000 - 0x84);
  EXPECT_EQ(shadow.FindExact(0x1088, 8)->steps.size(), 0U);
  EXPECT_EQ(shadow.FindExact(0x1080, 4)->steps.size(), 3U);
  EXPECT_EQ(shadow.FindExact(0x10c0, 8), nullptr);
}

TEST(ShadowMemoryTest, GivesUpRegionsThatAreCleared) {
  ShadowMemory<History> shadow;
  const auto touch = [](History& cell, std::uint64_t, std::uint64_t) { cell.steps = {1}; };
  shadow.ForEach(0x1000, 100000, touch);
  shadow.ForEach(std::uint64_t{1} << 40, 8, touch);
  EXPECT_FALSE(shadow.empty());
  shadow.Clear(0, std::uint64_t{1} << 41);
  EXPECT_TRUE(shadow.empty());
  shadow.ForEach(0x1000, 8, touch);
  EXPECT_NE(shadow.FindExact(0x1000, 8), nullptr);
  EXPECT_EQ(shadow.FindExact(std::uint64_t{1} << 40, 8), nullptr);
}

TEST(MomentClocksTest, KnowsWhatBelongsToOneEpoch) {
  MomentClocks clocks;
  MomentClocks::ThreadClock thread;
  clocks.Start(thread, 0);
  const auto release = [&](std::uint64_t index) {
    clocks.MoveTo(index);
    clocks.Increment(thread);
  };
  const auto in_one = [&](std::uint64_t a, std::uint64_t b) {
    return clocks.InOneEpoch(thread, MomentClocks::MomentAt(a), MomentClocks::MomentAt(b));
  };
  EXPECT_TRUE(in_one(5, 900));
  clocks.RememberReleases();
  release(1000);
  EXPECT_TRUE(in_one(1001, 1500));
  EXPECT_TRUE(in_one(1500, 1001));
  EXPECT_TRUE(in_one(5, 1000));  // what the release itself does belongs to what it ends
  EXPECT_FALSE(in_one(1000, 1001));
  std::uint64_t index = 2000;
  for (int i = 0; i < 20000; ++i, index += 10) release(index);
  const std::uint64_t last = index - 10;
  EXPECT_TRUE(in_one(last + 1, last + 1000));
  EXPECT_TRUE(in_one(last - 9, last));
  EXPECT_FALSE(in_one(last - 9, last + 1));
  EXPECT_FALSE(in_one(last - 10, last - 9));
  // Longer ago than is remembered nothing is known.
  EXPECT_FALSE(in_one(5, 6));
  EXPECT_FALSE(in_one(1001, 1002));
  // Of an ended thread the last few.
  EXPECT_TRUE(in_one(last - 999, last - 998));
  clocks.End(thread);
  EXPECT_FALSE(in_one(last - 999, last - 998));
  EXPECT_TRUE(in_one(last - 109, last - 108));
  EXPECT_FALSE(in_one(last - 109, last - 99));
}

TEST(EndedClocksTest, GiveBackWhatWasPutThere) {
  constexpr ThreadId kThreads = 400;
  std::mt19937_64 random(1);
  EndedClocks ended;
  std::map<ThreadId, VectorClock> expected;
  VectorClock known;  // by all, and more each time
  for (ThreadId thread = 0; thread < kThreads; ++thread) {
    known.Set(thread, thread + 1);
    if (random() % 8 == 0)
      known.Set(static_cast<ThreadId>(random() % (thread + 1)), random() % 1000);
    VectorClock clock = known;
    if (random() % 16 == 0) clock.Clear();
    if (random() % 4 == 0) clock.Set(kThreads + static_cast<ThreadId>(random() % 9), 7);
    expected[thread] = clock;
    ended.Put(thread, std::move(clock));
    if (random() % 3 != 0) continue;
    const auto some = std::next(expected.begin(), static_cast<int>(random() % expected.size()));
    const VectorClock taken = ended.Take(some->first);
    EXPECT_TRUE(taken.Covers(some->second) && some->second.Covers(taken)) << some->first;
    expected.erase(some);
  }
  for (const auto& [thread, clock] : expected) {
    const VectorClock taken = ended.Take(thread);
    EXPECT_TRUE(taken.Covers(clock) && clock.Covers(taken)) << thread;
    EXPECT_TRUE(ended.Take(thread).empty());
  }
}

// Threads 0 to 2, the last two of which know of event 2, a release by thread 1.
class WaitingTest : public testing::Test {
 protected:
  WaitingTest() {
    for (const Event& event : {Fork(0, 1), Fork(0, 2), Release(1, 7), Acquire(2, 7)}) Do(event);
  }
  void Do(const Event& event) {
    synchronisation_.MoveTo(index_++);
    synchronisation_.Apply(event);
  }
  // Whether that is known to all that count.
  bool IsKnownToAll() const {
    return synchronisation_.KnownToAll()[1] >= MomentClocks::MomentAt(2);
  }

  Synchronisation<MomentClocks> synchronisation_;
  std::uint64_t index_ = 0;
};

TEST_F(WaitingTest, WhoWaitsForAnotherThreadNeedNotKnow) {
  EXPECT_FALSE(IsKnownToAll());
  Do(JoinBegin(0, 1));
  EXPECT_TRUE(IsKnownToAll());
  // The other one waits, too.
  Do(JoinBegin(1, 2));
  EXPECT_TRUE(IsKnownToAll());
  Do(End(2));
  Do(Join(1, 2));
  EXPECT_TRUE(IsKnownToAll());
}

TEST_F(WaitingTest, AWaitEndsWithTheNextEvent) {
  const Event events[] = {Acquire(0, 9),
                          Release(0, 9),
                          MakeEvent(EventKind::kAcquireShared, 0, 9),
                          MakeEvent(EventKind::kReleaseShared, 0, 9),
                          MakeEvent(EventKind::kHappensAfter, 0, 9),
                          MakeEvent(EventKind::kBarrierEnter, 0, 9),
                          MakeEvent(EventKind::kBarrierLeave, 0, 9),
                          JoinBegin(0, 0),
                          Fork(0, 3)};
  for (const Event& event : events) {
    Do(JoinBegin(0, 1));
    ASSERT_TRUE(IsKnownToAll());
    Do(event);
    EXPECT_FALSE(IsKnownToAll()) << static_cast<int>(event.kind);
  }
  Do(End(3));
  // What detectors ask for at an access.
  for (const auto& access : {+[](Synchronisation<MomentClocks>& of) { of.EpochOf(0); },
                             +[](Synchronisation<MomentClocks>& of) { of.MomentOf(Read(0, 8)); },
                             +[](Synchronisation<MomentClocks>& of) { of.NowOf(Read(0, 8)); },
                             +[](Synchronisation<MomentClocks>& of) { of.ClockOf(0); },
                             +[](Synchronisation<MomentClocks>& of) { of.Increment(0); }}) {
    const Epoch before = synchronisation_.LatestEpochOf(0);
    Do(JoinBegin(0, 1));
    ASSERT_TRUE(IsKnownToAll());
    EXPECT_EQ(synchronisation_.LatestEpochOf(0), before);
    access(synchronisation_);
    EXPECT_FALSE(IsKnownToAll());
  }
}

TEST_F(WaitingTest, WhatOthersDoToAThreadThatWaitsLeavesItWaiting) {
  Do(JoinBegin(0, 1));
  Do(MakeEvent(EventKind::kHappensBefore, 0, 9));
  synchronisation_.LatestEpochOf(0);
  EXPECT_FALSE(synchronisation_.HasEndedOrKnows(0, Epoch(1, MomentClocks::MomentAt(2))));
  EXPECT_TRUE(IsKnownToAll());
  // It goes on in the epoch that it has begun meanwhile.
  EXPECT_EQ(synchronisation_.EpochOf(0), Epoch(0, MomentClocks::MomentAt(index_ - 1)));
  EXPECT_FALSE(IsKnownToAll());
}

TEST_F(WaitingTest, NotForItselfNorForWhoIsNotThere) {
  for (const ThreadId other : {0U, 3U, 1000U}) {
    Do(JoinBegin(0, other));
    EXPECT_FALSE(IsKnownToAll()) << other;
  }
  Do(JoinBegin(0, 3));
  Do(Fork(1, 3));
  EXPECT_FALSE(IsKnownToAll());
  Do(End(3));
  Do(JoinBegin(0, 3));
  EXPECT_FALSE(IsKnownToAll());
}

// From then on it knows no more than when that one ended.
TEST_F(WaitingTest, UntilTheOtherOneHasEnded) {
  Do(JoinBegin(0, 1));
  Do(End(1));
  EXPECT_FALSE(IsKnownToAll());
  Do(Join(0, 1));
  EXPECT_TRUE(IsKnownToAll());
}

TEST_F(WaitingTest, ACircleWaitsForEver) {
  Do(JoinBegin(1, 2));
  Do(JoinBegin(2, 1));
  EXPECT_FALSE(IsKnownToAll());
  Do(JoinBegin(0, 2));
  EXPECT_TRUE(synchronisation_.KnownToAll().empty());
}

// Thread 1 lives all along.
class ChainsTest : public testing::Test {
 protected:
  ChainsTest() { Do(Fork(0, 1)); }
  void Do(const Event& event) {
    synchronisation_.MoveTo(index_++);
    synchronisation_.Apply(event);
  }
  Clock Access(ThreadId thread, std::uint64_t address) {
    const Clock moment = MomentClocks::MomentAt(index_++);
    synchronisation_.NowOf(Write(thread, address));
    return moment;
  }
  void Clear(ThreadId thread, std::uint64_t address, std::uint64_t size) {
    ++index_;
    synchronisation_.NoteCleared(thread, address, size);
  }
  void Copy() {
    ++index_;
    synchronisation_.NoteCopied();
  }
  ThreadId ChainOf(ThreadId thread) { return synchronisation_.LatestEpochOf(thread).thread(); }
  bool Knows(ThreadId thread, ThreadId other, Clock moment) {
    return synchronisation_.ClockOf(thread).Covers(Epoch(ChainOf(other), moment));
  }
  // Whether a thread that 0 starts follows 2, which has ended.
  bool IsFollowed() {
    Do(End(2));
    Do(Acquire(0, 7));
    Do(Fork(0, 3));
    return ChainOf(3) == ChainOf(2);
  }

  Synchronisation<MomentClocks> synchronisation_;
  std::uint64_t index_ = 0;
};

TEST_F(ChainsTest, ThreadsThatAreJoinedAreOne) {
  for (ThreadId thread = 2; thread < 1000; ++thread) {
    Do(Fork(0, thread));
    Access(thread, 0x1000);
    Do(End(thread));
    Do(Join(0, thread));
  }
  EXPECT_EQ(synchronisation_.ClockOf(0).size(), 3U);
}

TEST_F(ChainsTest, ThreadsAtTheSameTimeAreNot) {
  for (ThreadId thread = 2; thread < 10; ++thread) Do(Fork(0, thread));
  for (ThreadId thread = 2; thread < 10; ++thread) Do(End(thread));
  for (ThreadId thread = 10; thread < 20; ++thread) Do(Fork(0, thread));
  std::set<ThreadId> chains;
  for (ThreadId thread = 10; thread < 20; ++thread) chains.insert(ChainOf(thread));
  EXPECT_EQ(chains.size(), 10U);
}

TEST_F(ChainsTest, NobodyFollowsWhoseAccessesAreNotKnown) {
  Do(Fork(0, 2));
  Access(2, 0x1000);
  Do(End(2));
  Do(Fork(0, 3));
  EXPECT_NE(ChainOf(3), ChainOf(2));
}

TEST_F(ChainsTest, TheyMayBeKnownByALock) {
  Do(Fork(0, 2));
  Access(2, 0x1000);
  Do(Release(2, 7));
  EXPECT_TRUE(IsFollowed());
}

TEST_F(ChainsTest, NotThoseAfterwards) {
  Do(Fork(0, 2));
  Do(Release(2, 7));
  Access(2, 0x1000);
  EXPECT_FALSE(IsFollowed());
}

// A stack from 0x50000 to 0x60000, on which a thread begins.
TEST_F(ChainsTest, AStackThatIsForgottenNeedNotBeKnown) {
  Do(Fork(0, 2));
  Access(2, 0x5f000);
  Access(2, 0x1000);
  Do(Release(2, 7));
  Access(2, 0x5e000);
  Access(2, 0x5f010);
  Clear(2, 0x50000, 0x8000);
  Do(MakeEvent(EventKind::kHappensBefore, 2, 0x9000));
  Clear(2, 0x50000, 0x10000);
  EXPECT_TRUE(IsFollowed());
}

TEST_F(ChainsTest, AllOfItMustBeForgotten) {
  constexpr std::uint64_t kFirst = 0x5f000;
  struct Case {
    std::uint64_t address, size, begin, end;
  };
  ThreadId thread = 2;
  for (const Case& accessed :
       {Case{kFirst - 8192, 8, kFirst - 8191, 0x70000},
        Case{kFirst + 2047, 8, 0x50000, kFirst + 2048}, Case{kFirst - 8193, 8, 0x50000, 0x60000},
        Case{kFirst + 2048, 8, 0x50000, 0x60000}, Case{kFirst, 65, 0x50000, 0x60000}}) {
    Do(Fork(0, thread));
    Access(thread, kFirst);
    Do(Release(thread, 7));
    synchronisation_.NowOf(Write(thread, accessed.address, accessed.size));
    Clear(thread, accessed.begin, accessed.end - accessed.begin);
    Do(End(thread));
    Do(Acquire(0, 7));
    Do(Fork(0, thread + 1));
    EXPECT_NE(ChainOf(thread + 1), ChainOf(thread)) << accessed.begin;
    thread += 2;
  }
}

TEST_F(ChainsTest, NorMayItBeRememberedElsewhere) {
  Do(Fork(0, 2));
  Do(Release(2, 7));
  Access(2, 0x5f000);
  Copy();
  Clear(2, 0x50000, 0x10000);
  EXPECT_FALSE(IsFollowed());
}

TEST_F(ChainsTest, CopiesOfOthersDoNotMatter) {
  Access(1, 0x5f000);
  Copy();
  Do(Fork(0, 2));
  Do(Release(2, 7));
  Access(2, 0x5f000);
  Clear(2, 0x50000, 0x10000);
  EXPECT_TRUE(IsFollowed());
}

// 4, started by 1, knows nothing of 2, whose chain 3 has when it gives its stack back.
TEST_F(ChainsTest, NorDoesAnotherThreadsStackHideTheFirstOnes) {
  Do(Fork(0, 2));
  Access(2, 0x1000);
  Do(Release(2, 7));
  ASSERT_TRUE(IsFollowed());
  Access(3, 0x5f000);
  Clear(3, 0x50000, 0x10000);
  Do(End(3));
  Do(Fork(1, 4));
  EXPECT_NE(ChainOf(4), ChainOf(2));
}

TEST_F(ChainsTest, WhoJoinsAThreadLaterDoesNotKnowTheNextOne) {
  Do(Fork(0, 2));
  ASSERT_TRUE(IsFollowed());
  const Clock moment = Access(3, 0x1000);
  Do(Join(0, 2));
  Do(MakeEvent(EventKind::kHappensBefore, 2, 0x9000));
  Do(MakeEvent(EventKind::kHappensAfter, 0, 0x9000));
  EXPECT_FALSE(Knows(0, 3, moment));
  Do(End(3));
  Do(Join(0, 3));
  EXPECT_TRUE(Knows(0, 3, moment));
}

// As no log of a program should have it.
TEST_F(ChainsTest, WhoActsAfterItsEndKeepsIt) {
  Do(Fork(0, 2));
  Do(End(2));
  const Clock moment = Access(2, 0x1000);
  Do(Acquire(0, 7));
  Do(Fork(0, 3));
  EXPECT_NE(ChainOf(3), ChainOf(2));
  EXPECT_FALSE(Knows(3, 2, moment));
}

TEST_F(ChainsTest, OrHasAnotherOne) {
  Do(Fork(0, 2));
  const Clock before = Access(2, 0x1000);
  Do(Release(2, 7));
  ASSERT_TRUE(IsFollowed());
  const ThreadId chain = ChainOf(2);
  const Clock moment = Access(3, 0x1000);
  const Clock after = Access(2, 0x1000);
  EXPECT_NE(ChainOf(2), chain);
  EXPECT_TRUE(synchronisation_.ClockOf(2).Covers(Epoch(chain, before)));
  EXPECT_FALSE(Knows(2, 3, moment));
  EXPECT_FALSE(Knows(3, 2, after));
}

TEST(AccessRecordTest, KeepsMomentAndPlace) {
  const Clock moment = (Clock{1} << 39) - 1;
  const AccessRecord record(moment, 0xfffffe);
  EXPECT_EQ(record.moment(), moment);
  EXPECT_EQ(record.place(), 0xfffffe);
  EXPECT_FALSE(record.empty());
  EXPECT_FALSE(record.IsOther());
  EXPECT_TRUE(record.IsAfter(moment - 1));
  EXPECT_FALSE(record.IsAfter(moment));
  EXPECT_TRUE(AccessRecord().empty());
  EXPECT_FALSE(AccessRecord().IsAfter(0));
  const std::uint64_t value = ~std::uint64_t{0} >> 1;
  EXPECT_TRUE(AccessRecord::Other(value).IsOther());
  EXPECT_EQ(AccessRecord::Other(value).other(), value);
  EXPECT_FALSE(AccessRecord::Other(value).IsAfter(0));
}

TEST(ChunkedArrayTest, KeepsValuesWhereTheyAre) {
  ChunkedArray<std::shared_ptr<int>> array;
  const auto shared = std::make_shared<int>(5);
  constexpr int kAdded = 20'000;
  std::vector<const std::shared_ptr<int>*> added;
  added.reserve(kAdded);
  for (int i = 0; i < kAdded; ++i)
    added.push_back(&(i % 3 == 0   ? array.Add()
                      : i % 3 == 1 ? array.Add(array[0])
                                   : array.Add(shared)));
  ASSERT_EQ(array.size(), added.size());
  for (std::size_t i = 0; i < array.size(); ++i) {
    ASSERT_EQ(&std::as_const(array)[i], added[i]);
    ASSERT_EQ(array[i], i % 3 == 2 ? shared : nullptr);
  }
  EXPECT_GT(shared.use_count(), 6000);
}

TEST(ChunkedArrayTest, EndsItsValues) {
  const auto shared = std::make_shared<int>(5);
  {
    ChunkedArray<std::shared_ptr<int>> array;
    for (int i = 0; i < 10'000; ++i) array.Add(shared);
  }
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(AccessPlacesTest, EqualPlacesHaveOneNumber) {
  AccessPlaces places;
  std::mt19937 random(1);
  std::map<PlaceId, AccessPlace> known;
  for (int i = 0; i < 40000; ++i) {
    const AccessPlace place{
        random() % 30, random() % 5 * 8, static_cast<std::uint32_t>(random() % 2 * 4),
        static_cast<std::uint32_t>(random() % 5), static_cast<ThreadId>(random() % 3)};
    const PlaceId id = places.IdOf(place, place.thread);
    ASSERT_NE(id, 0);
    ASSERT_EQ(known.emplace(id, place).first->second, place);
    ASSERT_EQ(places.ChainOf(id), place.thread);
  }
  EXPECT_EQ(known.size(), 30 * 5 * 2 * 5 * 3);
  EXPECT_GT(places.id_limit(), known.size());
  EXPECT_LT(places.id_limit(), known.size() + 300);
  EXPECT_EQ(places.ChainOf(0), kMaxThreads);
}

TEST(AccessPlacesTest, NumbersOfForgottenPlacesAreUsedAgain) {
  AccessPlaces places;
  const auto place = [](ThreadId thread, std::uint64_t ip) {
    return AccessPlace{ip, 0, 8, 0, thread};
  };
  const auto ask_for_a_thousand = [&](std::uint64_t ip) {
    std::set<PlaceId> ids;
    for (unsigned i = 0; i < 1000; ++i) ids.insert(places.IdOf(place(i % 4, ip + i), i % 4));
    EXPECT_EQ(ids.size(), 1000U);
    return ids;
  };
  ask_for_a_thousand(0);
  const std::size_t limit = places.id_limit();
  const PlaceId kept = places.IdOf(place(3, 7), 3);
  std::vector<bool> used(limit);
  used[kept] = true;
  places.Collect(used);
  EXPECT_FALSE(ask_for_a_thousand(2000).contains(kept));
  EXPECT_LE(places.id_limit(), limit + AccessPlaces::kBlock);
  EXPECT_EQ(places.IdOf(place(3, 7), 3), kept);
  EXPECT_EQ(places.ChainOf(kept), 3U);
}

TEST(AccessPlacesTest, ThereAreOnlySoMany) {
  constexpr std::size_t kLimit = 1 << 20;
  AccessPlaces places(kLimit);
  // One for each thread: they take most room.
  constexpr ThreadId kMost = kLimit / AccessPlaces::kBlock - 1;
  for (ThreadId thread = 0; thread < kMost; ++thread)
    ASSERT_NE(places.IdOf({1, 0, 8, 0, thread}, thread), 0U);
  EXPECT_EQ(places.IdOf({1, 0, 8, 0, kMost}, kMost), 0U);
  EXPECT_TRUE(places.WantsCollection());
  places.Collect(std::vector<bool>(places.id_limit()));
  EXPECT_FALSE(places.WantsCollection());
  EXPECT_NE(places.IdOf({1, 0, 8, 0, kMost}, kMost), 0U);
}

TEST(AccessPlacesTest, AtomicAccessesOfEachKindHaveTheirOwn) {
  Access access{5, 0x1003, 64, 0x400000, 7, 3, EventKind::kAtomicRmw};
  const AccessPlace rmw = AccessPlace::MakeAtomic(access, 0x1008);
  EXPECT_EQ(rmw.atomic_kind(), EventKind::kAtomicRmw);
  EXPECT_EQ(rmw.AccessAt(5, rmw.atomic_kind(), 0x1008), access);
  access.kind = EventKind::kAtomicWrite;
  access.size = 32768;
  const AccessPlace write = AccessPlace::MakeAtomic(access, 0x2000);
  EXPECT_EQ(write.AccessAt(5, write.atomic_kind(), 0x1008), access);
  EXPECT_EQ(write.size(), 32768U);
  access.kind = EventKind::kAtomicRmw;
  EXPECT_FALSE(AccessPlace::MakeAtomic(access, 0x2000) == write);
}

TEST(RecordHistoryTest, HasTheLastRecordOfEachThread) {
  std::mt19937 random(1);
  BlockPool pool;
  const auto thread_of = [](const AccessRecord& record) {
    return record.empty() ? kMaxThreads : ThreadId{record.place() % 64};
  };
  const auto records = [](const RecordHistory& history) {
    std::vector<AccessRecord> all;
    history.ForEach([&](const AccessRecord& record) { all.push_back(record); });
    return all;
  };
  for (const PlaceId threads : {1, 2, 5, 64}) {
    std::vector<RecordHistory> histories(3);
    std::vector<std::vector<AccessRecord>> expected(3);
    for (int i = 0; i < 1000; ++i) {
      const std::size_t at = random() % 3;
      if (random() % 50 == 0) {
        const std::size_t from = random() % 3;
        histories[at] = histories[from];
        expected[at] = expected[from];
      } else if (random() % 50 == 0) {
        const auto later = [](const AccessRecord& record) {
          return AccessRecord(record.moment() + 1, record.place());
        };
        histories[at].Transform(later);
        for (AccessRecord& record : expected[at]) record = later(record);
      } else if (random() % 100 == 0) {
        histories[at] = RecordHistory();
        expected[at].clear();
      } else {
        const auto place = static_cast<PlaceId>(64 * (1 + random() % 9) + random() % threads);
        const AccessRecord record(1 + random() % 1000, place);
        histories[at].Put(pool, record, thread_of);
        const auto old = std::find_if(
            expected[at].begin(), expected[at].end(),
            [&](const AccessRecord& known) { return thread_of(known) == thread_of(record); });
        if (old != expected[at].end()) {
          *old = record;
        } else {
          expected[at].push_back(record);
        }
      }
      ASSERT_EQ(records(histories[at]), expected[at]);
    }
  }
}

TEST(RecordHistoryTest, RecordsMayGo) {
  BlockPool pool;
  RecordHistory history;
  const auto thread_of = [](const AccessRecord& record) {
    return record.empty() ? kMaxThreads : ThreadId{record.place()};
  };
  for (PlaceId place = 1; place <= 5; ++place) history.Put(pool, {7, place}, thread_of);
  history.Transform(
      [](const AccessRecord& record) { return record.place() % 2 == 0 ? AccessRecord() : record; });
  history.Put(pool, {8, 5}, thread_of);
  history.Put(pool, {8, 6}, thread_of);
  std::set<PlaceId> places;
  history.ForEach(
      [&](const AccessRecord& record) { EXPECT_TRUE(places.insert(record.place()).second); });
  EXPECT_EQ(places, (std::set<PlaceId>{1, 3, 5, 6}));
}

TEST(MomentAtomicsTest, WhatHasNoNumberIsNotRemembered) {
  MomentAtomics atomics(2 * AccessPlaces::kBlock);
  std::vector<MomentAtomics::Cell> cells(2 * AccessPlaces::kBlock);
  const auto count = [&](const MomentAtomics::Cell& cell) {
    int races = 0;
    atomics.ForEachAfter(VectorClock(), cell, 0x1000, true, [&](const TimedAccess&) { ++races; });
    return races;
  };
  std::size_t remembered = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Access access{i, 0x1000, 8, i, 0, 0, EventKind::kAtomicWrite};
    atomics.Put(cells[i], 0x1000, {{0, MomentClocks::MomentAt(i)}, kEmptyLockset, access});
    remembered += count(cells[i]);
    EXPECT_EQ(cells[i].empty(), count(cells[i]) == 0);
  }
  EXPECT_EQ(remembered, AccessPlaces::kBlock);
  MomentAtomics::Cell copy = cells[0];
  atomics.Move(copy, 0x2008, 0x1000);  // nor can the copy's be
  EXPECT_EQ(count(copy), 0);
  EXPECT_EQ(count(cells[0]), 1);
  const auto remove = [&](EventKind kind, ThreadId thread) {
    atomics.Remove(cells[0], {.thread = thread, .kind = kind});
    return count(cells[0]);
  };
  EXPECT_EQ(remove(EventKind::kAtomicRead, 0), 1);
  EXPECT_EQ(remove(EventKind::kAtomicRmw, 1), 1);
  EXPECT_EQ(remove(EventKind::kAtomicRmw, 0), 0);
}

TEST(MomentHistoryTest, AgreesWithAMap) {
  for (const std::uint64_t farthest :
       {std::uint64_t{3}, std::uint64_t{1} << 14, std::uint64_t{1} << 20, std::uint64_t{1} << 33}) {
    std::mt19937_64 random(farthest);
    MomentHistory history;
    std::map<std::uint64_t, Clock> expected;
    EXPECT_FALSE(history.ClockAt(5));
    std::uint64_t moment = 10;
    Clock clock = 7;
    for (int i = 0; i < 30'000; ++i) {
      moment += random() % farthest;
      clock += random() % 3 == 0 ? 0 : random() % farthest;
      history.Add(moment, clock);
      // A clock that stays what it was counts from where it became that.
      if (expected.empty() || expected.rbegin()->second != clock) expected[moment] = clock;
      const std::uint64_t wanted = random() % (moment + 5);
      const auto next = expected.upper_bound(wanted);
      const auto found = history.ClockAt(wanted);
      if (next == expected.begin()) {
        ASSERT_FALSE(found) << wanted;
      } else {
        ASSERT_EQ(found, std::prev(next)->second) << wanted;
      }
      const auto change = expected.lower_bound(wanted);
      const auto led_to = history.ClockAfter(wanted);
      ASSERT_EQ(led_to.has_value(), change != expected.end()) << wanted;
      if (led_to) {
        ASSERT_EQ(*led_to, change->second) << wanted;
      }
    }
    EXPECT_EQ(history.latest_moment(), expected.rbegin()->first);
  }
}

TEST(MomentHistoryTest, ForgetsOnlyWhatIsOld) {
  constexpr std::uint64_t kAdded = 3 * MomentHistory::kLeast;
  MomentHistory history;
  for (std::uint64_t i = 0; i < kAdded; ++i) history.Add(10 * i, i + 1);
  EXPECT_FALSE(history.ClockAt(10 * MomentHistory::kLeast));
  for (std::uint64_t i = kAdded - MomentHistory::kLeast; i < kAdded; ++i)
    ASSERT_EQ(history.ClockAt(10 * i + 9), i + 1);
}

TEST(ReaderListTest, KeepsTheLastReadOfEachThread) {
  using List = ReaderList<BlockPool>;
  BlockPool pool;
  const auto thread_of = [](const AccessRecord& record) {
    return record.empty() ? kMaxThreads : record.place() - 1;
  };
  std::mt19937 random(1);
  std::map<ThreadId, AccessRecord> expected{{3, {1, 4}}, {5, {1, 6}}};
  List list = List::New(pool, expected[3], expected[5], thread_of);
  for (Clock moment = 2; moment < 500; ++moment) {
    // Many of the first ones have the same home.
    const auto thread = static_cast<ThreadId>(random() % 40 * (moment < 20 ? 8 : 1));
    const AccessRecord record(moment, thread + 1);
    const std::uint32_t at = list.Find(thread, thread_of);
    EXPECT_EQ(!list.At(at).empty(), expected.contains(thread));
    list.Put(at, record, thread_of);
    EXPECT_EQ(list.At(list.Find(thread, thread_of)), record);
    expected[thread] = record;
    EXPECT_TRUE(List::IsIn(list.InRecord()));
    list = List::From(list.InRecord());
  }
  List copy = list.NewCopy();
  list.Delete();
  std::map<ThreadId, AccessRecord> found;
  copy.ForEach(
      [&](const AccessRecord& read) { EXPECT_TRUE(found.emplace(thread_of(read), read).second); });
  EXPECT_EQ(found, expected);
  copy.Delete();
  EXPECT_FALSE(List::IsIn(AccessRecord{}));
  EXPECT_FALSE(List::IsIn(AccessRecord(1, 1)));
}

TEST(BlockPoolTest, BlocksAreApartAndUsedAgain) {
  BlockPool pool;
  struct Block {
    std::uint64_t* words;
    std::size_t bytes;
  };
  std::vector<Block> live;
  std::set<std::uint64_t*> ever;
  std::mt19937 random(1);
  for (std::uint64_t step = 1; step < 60000; ++step) {
    if (random() % 3 != 0 || live.empty()) {
      const std::size_t bytes = std::size_t{8} << (step % 1000 == 0 ? random() % 14 : random() % 6);
      void* const block = live.empty() || random() % 2 == 0
                              ? pool.Allocate(bytes)
                              : BlockPool::AllocateBeside(live.back().words, bytes);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block) % std::min<std::size_t>(bytes, 64), 0U);
      live.push_back({static_cast<std::uint64_t*>(block), bytes});
      ever.insert(live.back().words);
      std::fill_n(live.back().words, bytes / 8, reinterpret_cast<std::uintptr_t>(block));
    } else {
      std::swap(live[random() % live.size()], live.back());
      const Block& block = live.back();
      for (std::size_t i = 0; i < block.bytes / 8; ++i)
        ASSERT_EQ(block.words[i], reinterpret_cast<std::uintptr_t>(block.words));
      BlockPool::Free(block.words, block.bytes);
      live.pop_back();
    }
  }
  EXPECT_LT(ever.size(), live.size() + 2000);
  for (const Block& block : live) BlockPool::Free(block.words, block.bytes);
}

TEST(PageIndexTest, FindsWhatIsThere) {
  PageIndex<std::uint64_t> table;
  std::map<std::uint64_t, std::uint64_t> expected;
  std::mt19937 random(1);
  for (unsigned step = 0; step < 20000; ++step) {
    // Few numbers, so that most are met again, and neighbours in the table, too.
    const std::uint64_t number = random() % 64 + (random() % 16 << 40);
    if (expected.contains(number)) {
      ASSERT_EQ(table.Find(number), &expected[number]);
      if (random() % 2 == 0) continue;
      table.Erase(number);
      expected.erase(number);
    } else {
      ASSERT_EQ(table.Find(number), nullptr);
      table.Insert(number, &expected[number]);
    }
  }
  for (auto& [number, value] : expected) EXPECT_EQ(table.Find(number), &value);
}

TEST(SlabPoolTest, ObjectsAreApartAndUsedAgain) {
  struct alignas(64) Object {
    std::uint64_t words[17] = {};
  };
  SlabPool<Object> pool;
  std::vector<Object*> live;
  std::mt19937 random(1);
  std::set<Object*> ever;
  for (std::uint64_t step = 1; step < 60000; ++step) {
    if (random() % 3 != 0 || live.empty()) {
      Object* const object = pool.New();
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(object) % 64, 0U);
      for (std::uint64_t& word : object->words) {
        ASSERT_EQ(std::exchange(word, reinterpret_cast<std::uintptr_t>(object)), 0U);
      }
      live.push_back(object);
      ever.insert(object);
    } else {
      std::swap(live[random() % live.size()], live.back());
      for (const std::uint64_t word : live.back()->words) {
        ASSERT_EQ(word, reinterpret_cast<std::uintptr_t>(live.back()));
      }
      pool.Delete(live.back());
      live.pop_back();
    }
  }
  EXPECT_LT(ever.size(), live.size() + 1000);
}

TEST(CellPoolTest, BlocksAreApartAndUsedAgain) {
  static int cells = 0;
  struct Cell {
    Cell() { ++cells; }
    Cell(const Cell&) = delete;
    Cell& operator=(const Cell&) = delete;
    ~Cell() { --cells; }
    std::uint64_t value = 0;
  };
  constexpr unsigned kGroup = 4;
  CellPool<Cell, kGroup> pool;
  struct Block {
    std::uint32_t reference;
    unsigned groups;
  };
  std::vector<Block> live;
  std::mt19937 random(1);
  std::set<std::uint32_t> ever;
  std::size_t groups = 0;
  for (int step = 1; step < 400000; ++step) {
    if (random() % 3 != 0 || live.empty()) {
      const unsigned wanted = 1 + random() % 2;
      const std::uint32_t block = pool.New(wanted);
      ASSERT_NE(block, 0U);
      ASSERT_LT(block, 1U << 31);
      for (unsigned i = 0; i < wanted * kGroup; ++i)
        ASSERT_EQ(std::exchange(pool.At(block)[i].value, block), 0U);
      live.push_back({block, wanted});
      ever.insert(block);
      groups += wanted;
    } else {
      std::swap(live[random() % live.size()], live.back());
      const Block block = live.back();
      for (unsigned i = 0; i < block.groups * kGroup; ++i)
        ASSERT_EQ(pool.At(block.reference)[i].value, block.reference);
      pool.Delete(block.reference, block.groups);
      live.pop_back();
      groups -= block.groups;
    }
    ASSERT_EQ(pool.bytes(), groups * kGroup * sizeof(Cell));
    ASSERT_EQ(static_cast<std::size_t>(cells), groups * kGroup);
  }
  EXPECT_LT(ever.size(), live.size() + 4000);
  for (const Block& block : live) pool.Delete(block.reference, block.groups);
  EXPECT_EQ(cells, 0);
}

TEST(CellPoolTest, LargeBlocksServeSmallOnes) {
  CellPool<std::uint64_t, 2> pool;
  std::vector<std::uint32_t> blocks(1000);
  for (std::uint32_t& block : blocks) block = pool.New(2);
  const std::uint32_t last = *std::max_element(blocks.begin(), blocks.end()) + 1;
  for (const std::uint32_t block : blocks) pool.Delete(block, 2);
  std::set<std::uint32_t> small;
  for (std::size_t i = 0; i < 2 * blocks.size(); ++i) small.insert(pool.New());
  EXPECT_EQ(small.size(), 2 * blocks.size());
  EXPECT_LE(*small.rbegin(), last);
}

TEST(BarrierRoundsTest, TheFirstToLeaveClosesTheRound) {
  BarrierRounds rounds;
  std::uint64_t round = 99;
  EXPECT_FALSE(rounds.Leave(1, 0, &round));
  EXPECT_EQ(rounds.Enter(1, 0), 0U);
  EXPECT_EQ(rounds.Enter(1, 1), 0U);
  EXPECT_EQ(rounds.Enter(2, 7), 0U);
  ASSERT_TRUE(rounds.Leave(1, 1, &round));
  EXPECT_EQ(round, 0U);
  EXPECT_TRUE(rounds.IsInUse(1, 0));
  EXPECT_EQ(rounds.Enter(1, 1), 1U);
  ASSERT_TRUE(rounds.Leave(1, 0, &round));
  EXPECT_EQ(round, 0U);
  EXPECT_FALSE(rounds.IsInUse(1, 0));
  EXPECT_TRUE(rounds.IsInUse(1, 1));
}

TEST(TrackingTest, AgreesWithASetOfBytes) {
  std::mt19937_64 random(3);
  RuntimeScopes tracking({});
  std::set<std::uint64_t> untracked;
  for (int step = 0; step < 3000; ++step) {
    const bool track = random() % 2 == 0;
    const Event event = MakeEvent(track ? EventKind::kTrack : EventKind::kUntrack, 0,
                                  random() % 100, random() % 30);
    tracking.Apply(event);
    for (std::uint64_t b = event.address; b < event.address + event.size; ++b) {
      if (track) {
        untracked.erase(b);
      } else {
        untracked.insert(b);
      }
    }
    std::set<std::uint64_t> visited;
    tracking.ForEachTracked(10, 100, [&](std::uint64_t address, std::uint64_t size) {
      for (std::uint64_t b = address; b < address + size; ++b) visited.insert(b);
    });
    for (std::uint64_t b = 0; b < 130; ++b) {
      ASSERT_EQ(visited.contains(b), b >= 10 && b < 110 && !untracked.contains(b)) << step;
    }
  }
}

}  // namespace
}  // namespace trapline
