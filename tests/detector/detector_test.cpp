// Behaviour of single detectors and of what they share, on small traces with known answers.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "detector/lard.h"
#include "tests/detector/trace_builder.h"
#include "tests/support/reference.h"

namespace trapline {
namespace {

constexpr std::uint64_t kX = 0x1000;
constexpr std::uint64_t kLock = 0x100;

std::uint64_t Races(std::string_view name, const std::vector<Event>& trace) {
  return RunOn(name, trace)->race_count();
}

std::uint64_t Value(const Detector& detector, std::string_view statistic) {
  for (const Statistic& entry : detector.statistics()) {
    if (entry.name == statistic) return entry.value;
  }
  ADD_FAILURE() << "no statistic " << statistic;
  return 0;
}

// All detectors that report a write and a read of two threads without any order or lock. (RaceTrack
// needs more evidence, Eraser and MultiRace take a first access for initialisation, Empty reports
// nothing.)
const std::vector<std::string> kDirect{"basicvc",  "djit+", "fasttrack",  "lockset", "hybrid",
                                       "acculock", "pacer", "goldilocks", "lard",    "literace"};

TEST(Registry, EveryDetectorCanBeBuiltAndKnowsItsName) {
  EXPECT_GE(Detectors().size(), 20U);
  for (const DetectorInfo& info : Detectors()) {
    const auto detector = MakeDetector(info.name);
    ASSERT_NE(detector, nullptr) << info.name;
    EXPECT_EQ(detector->name(), info.name);
    EXPECT_FALSE(info.description.empty());
  }
  EXPECT_EQ(MakeDetector("tree+acculock")->name(), "tree+acculock");
  EXPECT_EQ(MakeDetector("tree-exact+pacer")->name(), "tree-exact+pacer");
}

TEST(Registry, UnknownNamesGiveNothing) {
  EXPECT_EQ(MakeDetector("fasttrak"), nullptr);
  EXPECT_EQ(MakeDetector(""), nullptr);
  EXPECT_EQ(MakeDetector("tree+"), nullptr);
  EXPECT_EQ(MakeDetector("tree+nothing"), nullptr);
}

TEST(Report, ShowsBothAccesses) {
  Event first = Write(0, kX, 4, 0x400123);
  first.stack = 0xabcdef12;
  Event second = Read(1, kX + 2, 8, 0xffffffff81000000);
  second.stack = 7;
  for (const char* name : {"fasttrack", "basicvc", "hybrid"}) {
    const auto detector = RunOn(name, {Fork(0, 1), first, second});
    ASSERT_EQ(detector->races().size(), 1U) << name;
    const Race& race = detector->races()[0];
    EXPECT_EQ(race.first, (Access{1, kX, 4, 0x400123, 0xabcdef12, 0, EventKind::kWrite})) << name;
    EXPECT_EQ(race.second, (Access{2, kX + 2, 8, 0xffffffff81000000, 7, 1, EventKind::kRead}))
        << name;
    EXPECT_EQ(race.address, kX + 2) << name;
    EXPECT_EQ(race.size, 2U) << name;
    EXPECT_EQ(RaceKindName(race), "write-read race");
  }
}

TEST(Report, EarlierAccessesAreShownWholeWhereTheyWereMade) {
  // A long access is remembered by its address, a short one by its distance: both also after the
  // history has moved to another word.
  for (const std::uint64_t size : {8, 64, 65, 4096}) {
    const auto stayed = RunOn(
        "fasttrack", {Fork(0, 1), Write(0, kX + 16, size, 1), Write(1, kX + 16 + size - 8, 4, 2)});
    ASSERT_EQ(stayed->races().size(), 1U) << size;
    EXPECT_EQ(stayed->races()[0].first.address, kX + 16);
    EXPECT_EQ(stayed->races()[0].first.size, size);
    EXPECT_EQ(stayed->races()[0].address, kX + 16 + size - 8);
    const auto moved = RunOn(
        "fasttrack", {Fork(0, 1), Write(0, kX + 16, size, 1), Copy(0, kX + 0x10000, kX + 16, size),
                      Write(1, kX + 0x10000 + size - 8, 4, 2)});
    ASSERT_EQ(moved->races().size(), 1U) << size;
    EXPECT_EQ(moved->races()[0].first.address, kX + 16);
    EXPECT_EQ(moved->races()[0].first.size, size);
  }
}

// The races of plain accesses with earlier atomic ones.
std::vector<Race> RacesWithAtomics(std::string_view name, const std::vector<Event>& trace) {
  const auto detector = RunOn(name, trace);
  std::vector<Race> races;
  for (const Race& race : detector->races()) {
    if (IsAtomic(race.first.kind) && !IsAtomic(race.second.kind)) races.push_back(race);
  }
  return races;
}

// Relaxed atomic accesses of four threads to `words` words, some of them copied or cleared on the
// way.
std::vector<Event> RandomAtomics(unsigned seed, unsigned count, unsigned words) {
  std::mt19937 random(seed);
  std::vector<Event> trace{Fork(0, 1), Fork(0, 2), Fork(0, 3), Fork(0, 4)};
  const auto address = [&](unsigned unit) { return kX + random() % (8 * words) / unit * unit; };
  for (unsigned i = 0; i < count; ++i) {
    if (random() % 16 == 0) {
      const unsigned unit = random() % 2 == 0 ? 8 : 1;
      trace.push_back(Copy(0, address(unit), address(unit), 1 + random() % 40));
    } else if (random() % 32 == 0) {
      trace.push_back(Clear(0, address(1), 1 + random() % 20));
    } else {
      const auto kind =
          static_cast<EventKind>(static_cast<unsigned>(EventKind::kAtomicRead) + random() % 3);
      constexpr std::array<std::uint64_t, 9> kSizes{1, 2, 4, 8, 8, 16, 64, 65, 200};
      const std::uint64_t size = kSizes[random() % kSizes.size()];
      Event event = Atomic(kind, random() % 4, address(random() % 4 == 0 ? 1 : 8),
                           MemoryOrder::kRelaxed, size);
      event.ip = random() % 1000;
      event.stack = static_cast<std::uint32_t>(random() % 3);
      trace.push_back(event);
    }
  }
  return trace;
}

// Plain accesses of the fifth thread to all of that.
void ReadOrWriteAll(std::vector<Event>* trace, unsigned words, std::uint64_t size, bool write) {
  for (std::uint64_t at = kX; at < kX + 8 * words + 256; at += size)
    trace->push_back(write ? Write(4, at, size, 0x700) : Read(4, at, size, 0x700));
}

TEST(Report, ShowsAllOfAtomicAccesses) {
  // Detectors that remember few bytes of each say the same as one that remembers all.
  std::size_t races = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const unsigned words = 1 + seed % 40;
    std::vector<Event> trace = RandomAtomics(seed, 2 + seed % 100, words);
    ReadOrWriteAll(&trace, words, 1 + seed % 9, seed % 3 != 0);
    const std::vector<Race> expected = RacesWithAtomics("basicvc", trace);
    for (const char* name : {"fasttrack", "literace", "lard"})
      ASSERT_EQ(RacesWithAtomics(name, trace), expected) << name << " " << seed;
    races += expected.size();
  }
  EXPECT_GT(races, 1000U);
}

TEST(Report, ShowsAtomicAccessesWhoseLikesWereForgotten) {
  // So many instructions that those that nobody remembers any more are forgotten several times.
  constexpr unsigned kWords = 20;
  std::vector<Event> trace = RandomAtomics(1, 300, kWords);
  for (std::uint64_t ip = 0; ip < 600'000; ++ip) {
    Event event = Atomic(EventKind::kAtomicRmw, ip % 4, kX + 0x1000 + ip % 3 * 8,
                         ip % 1000 == 999 ? MemoryOrder::kRelease : MemoryOrder::kRelaxed);
    event.ip = 0x10000 + ip;
    trace.push_back(event);
  }
  trace.push_back(Copy(0, kX + 0x2000, kX, std::uint64_t{8} * kWords));
  const std::vector<Event> more = RandomAtomics(2, 300, kWords);
  trace.insert(trace.end(), more.begin() + 4, more.end());
  ReadOrWriteAll(&trace, 0x2000 / 8 + kWords, 8, true);
  const std::vector<Race> expected = RacesWithAtomics("basicvc", trace);
  EXPECT_GT(expected.size(), 100U);
  EXPECT_EQ(RacesWithAtomics("fasttrack", trace), expected);
}

TEST(Report, OfJoinedNeighboursNamesTheOneThatWasAccessed) {
  const auto races = [](const std::vector<Event>& trace, std::uint64_t condense_from) {
    const auto detector =
        MakeDetector("fasttrack", {.all_races = true, .condense_from = condense_from});
    for (std::size_t i = 0; i < trace.size(); ++i) detector->OnEvent(trace[i], i);
    return std::vector<Race>(detector->races().begin(), detector->races().end());
  };
  constexpr std::uint64_t kPage = 0x40000;
  std::vector<Event> trace{Fork(0, 1)};
  for (std::uint64_t i = 0; i < 512; ++i) trace.push_back(Write(0, kPage + 8 * i, 8, 1));
  // Most lines have one cell each by now. To other words than those they are of:
  trace.push_back(Copy(0, kPage + 0x5004, kPage, 4096));
  trace.push_back(Write(1, kPage + 0x500c, 1, 3));
  std::vector<Race> joined = races(trace, 1);
  std::vector<Race> one_by_one = races(trace, 0);
  ASSERT_EQ(joined.size(), 1U);
  ASSERT_EQ(one_by_one.size(), 1U);
  EXPECT_EQ(joined[0].first.address, kPage + 8);
  EXPECT_NE(joined[0].first.index, one_by_one[0].first.index);
  joined[0].first.index = one_by_one[0].first.index;
  EXPECT_EQ(joined, one_by_one);
  // A long access that meets many of them is a race with one of each line.
  trace.push_back(Write(1, kPage, 128, 4));
  joined = races(trace, 1);
  ASSERT_GE(joined.size(), 2U);
  EXPECT_EQ(joined[1].first.address, kPage);
  for (const Race& race : joined) EXPECT_LE(race.size, race.first.size);
}

// Thread 0 waits for thread 1; what that does to kX thread 2 knows, too.
TEST(Forgetting, AThreadThatWaitsAndDoesSomethingCountsAgain) {
  const auto races = [](const Event& event) {
    std::vector<Event> trace{Fork(0, 1),   Fork(0, 2),    JoinBegin(0, 1), event,
                             Write(1, kX), Release(1, 7), Acquire(2, 7)};
    // So many that there is something to forget meanwhile.
    for (std::uint64_t i = 1; i < 1000; ++i) trace.push_back(Read(2, kX + 0x10000 + 64 * i));
    trace.push_back(Write(0, kX));
    return RunOn("fasttrack", trace, {.condense_from = 1})->races().size();
  };
  for (const EventKind kind :
       {EventKind::kRead, EventKind::kWrite, EventKind::kAtomicRead, EventKind::kAtomicRmw}) {
    EXPECT_EQ(races(MakeEvent(kind, 0, kX + 0x4000, 8)), 1U) << static_cast<int>(kind);
  }
  EXPECT_EQ(races(Acquire(0, 9)), 1U);
  // Who does nothing before the other one has ended comes after it, and nothing need be kept.
  EXPECT_EQ(races(Read(1, kX + 0x4000)), 0U);
}

// To look whether what it did may be joined is nothing that a thread does.
TEST(Forgetting, GoesOnWhenNeighboursOfAThreadThatWaitsAreJoined) {
  std::vector<Event> trace{Fork(0, 1), Fork(0, 2)};
  for (std::uint64_t i = 0; i < 64; ++i) {  // in as many epochs: never joined
    trace.push_back(Write(0, kX + 0x8000 + 8 * i, 8, 1));
    trace.push_back(Release(0, 9));
  }
  trace.push_back(JoinBegin(0, 1));
  const auto read_much = [&](std::uint64_t from, std::uint64_t count) {  // which makes it look
    for (std::uint64_t i = 0; i < count; ++i) trace.push_back(Read(2, kX + from + 64 * i));
  };
  read_much(0x10000, 1000);
  for (const Event& event : {Write(1, kX), Release(1, 7), Acquire(2, 7)}) trace.push_back(event);
  read_much(0x100000, 10'000);
  trace.push_back(Write(0, kX));
  EXPECT_EQ(RunOn("fasttrack", trace, {.condense_from = 1})->races().size(), 0U);
}

// Thread 0 waits for thread 1, and a signal has it look meanwhile; threads 1 to 3 know of what is
// published. Nobody knows of thread 3's write, beside that of thread 1.
std::size_t RacesOfOneThatWaits(const std::vector<Event>& looks, std::uint64_t condense_from) {
  std::vector<Event> trace{Fork(0, 1),
                           Fork(0, 2),
                           Fork(0, 3),
                           JoinBegin(0, 1),
                           Write(3, kX + 8),
                           Write(1, kX),
                           Atomic(EventKind::kAtomicRmw, 1, kX + 0x1040, MemoryOrder::kRelaxed),
                           Atomic(EventKind::kAtomicWrite, 1, kX + 0x1000, MemoryOrder::kRelease),
                           Atomic(EventKind::kAtomicRead, 2, kX + 0x1000, MemoryOrder::kAcquire),
                           Release(2, 7),
                           Acquire(1, 7),
                           Acquire(3, 7)};
  for (std::uint64_t i = 1; i < 100; ++i) {
    trace.push_back(Atomic(EventKind::kAtomicRmw, 2, kX + 0x2000 + 64 * i, MemoryOrder::kRelaxed));
  }
  trace.insert(trace.end(), looks.begin(), looks.end());
  return RunOn("fasttrack", trace, {.condense_from = condense_from})->races().size();
}

TEST(Forgetting, WhatWasReleasedOrdersAThreadThatWaits) {
  const std::vector<Event> looks{
      Atomic(EventKind::kAtomicRead, 0, kX + 0x1000, MemoryOrder::kAcquire), Read(0, kX)};
  EXPECT_EQ(RacesOfOneThatWaits(looks, 0), 0U);
  EXPECT_EQ(RacesOfOneThatWaits(looks, 1), 0U);
  // What was not published is not forgotten.
  EXPECT_EQ(RacesOfOneThatWaits({looks[0], Read(0, kX + 8)}, 1), 1U);
}

TEST(Forgetting, IsOfAtomicAccessesToo) {
  const Event write = Write(0, kX + 0x1040);
  EXPECT_GT(RacesOfOneThatWaits({write}, 0), 0U);
  EXPECT_EQ(RacesOfOneThatWaits({write}, 1), 0U);
  // One that goes on for itself has nothing forgotten that it does not know of.
  EXPECT_GT(RacesOfOneThatWaits({Write(2, kX + 0x2040), Write(0, kX + 0x2040)}, 1), 0U);
}

TEST(Report, OneRaceForEachPairOfInstructions) {
  std::vector<Event> trace{Fork(0, 1)};
  for (std::uint64_t i = 0; i < 100; ++i) trace.push_back(Write(0, kX + 8 * i, 8, 1));
  for (std::uint64_t i = 0; i < 100; ++i) trace.push_back(Write(1, kX + 8 * i, 8, 1 + i % 2));
  const auto detector = MakeDetector("fasttrack");
  detector->OnEvents(trace, 0);
  EXPECT_EQ(detector->races().size(), 2U);
  EXPECT_EQ(detector->race_count(), 100U);
}

TEST(Bytes, NeighboursInOneWordDoNotRace) {
  for (const std::string& name : kDirect) {
    for (const std::uint64_t size : {1, 2, 4}) {
      std::vector<Event> trace{Fork(0, 1)};
      for (std::uint64_t offset = 0; offset < 8; offset += size) {
        trace.push_back(Write(offset / size % 2, kX + offset, size));
      }
      EXPECT_EQ(Races(name, trace), 0U) << name << " " << size;
    }
    EXPECT_EQ(Races(name, {Fork(0, 1), Write(0, kX + 1, 3), Write(1, kX + 4, 3)}), 0U) << name;
    EXPECT_EQ(Races(name, {Fork(0, 1), Write(0, kX + 1, 3), Write(1, kX + 3, 3)}), 1U) << name;
    EXPECT_EQ(Races(name, {Fork(0, 1), Write(0, kX, 8), Write(1, kX + 7, 1)}), 1U) << name;
  }
}

TEST(Bytes, LongAccessesOverlapWhereTheyDo) {
  for (const std::string& name : kDirect) {
    EXPECT_EQ(Races(name, {Fork(0, 1), Write(0, kX, 100000), Write(1, kX + 100000, 8)}), 0U);
    const auto detector = RunOn(name, {Fork(0, 1), Write(0, kX, 100000), Read(1, kX + 99999, 8)});
    ASSERT_EQ(detector->race_count(), 1U) << name;
    EXPECT_EQ(detector->races()[0].address, kX + 99999);
    EXPECT_EQ(detector->races()[0].size, 1U);
  }
}

TEST(Bytes, TheTopOfMemoryIsHarmless) {
  for (const DetectorInfo& info : Detectors()) {
    const std::uint64_t top = ~std::uint64_t{0};
    EXPECT_LE(Races(info.name, {Fork(0, 1), Write(0, top - 3, 8), Write(1, top, 1),
                                Write(0, top - 5000, 100000), Clear(0, top - 9000, ~0ULL),
                                Copy(0, top - 10, kX, 100), Copy(0, kX, top - 4100, 1 << 20),
                                Clear(0, 0, top), Write(0, kX, 0)}),
              1U)
        << info.name;
  }
}

TEST(History, ClearMakesMemoryFresh) {
  for (const std::string& name : kDirect) {
    EXPECT_EQ(Races(name, {Fork(0, 1), Write(0, kX), Clear(0, kX, 8), Write(1, kX)}), 0U) << name;
    // Part of a word, part of a page, whole pages.
    const auto part = RunOn(name, {Fork(0, 1), Write(0, kX), Clear(0, kX + 2, 3), Write(1, kX, 8)});
    ASSERT_EQ(part->race_count(), 2U) << name;
    EXPECT_EQ(part->races()[0].address, kX);
    EXPECT_EQ(part->races()[0].size, 2U);
    EXPECT_EQ(part->races()[1].address, kX + 5);
    EXPECT_EQ(part->races()[1].size, 3U);
    const auto pages = RunOn(
        name, {Fork(0, 1), Write(0, kX, 16384), Clear(0, kX + 100, 16000), Write(1, kX, 16384)});
    ASSERT_EQ(pages->race_count(), 2U) << name;
    EXPECT_EQ(pages->races()[0].size, 100U);
    EXPECT_EQ(pages->races()[1].address, kX + 16100);
    EXPECT_EQ(pages->races()[1].size, 284U);
  }
}

TEST(History, CopyMakesTheDestinationBehaveAsTheSourceDid) {
  for (const std::string& name : kDirect) {
    const std::uint64_t to = kX + 0x10003;  // another page, another alignment
    const std::vector<Event> moved{Fork(0, 1), Write(0, kX + 4, 4), Copy(0, to, kX, 8),
                                   Clear(0, kX, 8)};
    const auto races = [&](std::uint64_t address, std::uint64_t size) {
      std::vector<Event> trace = moved;
      trace.push_back(Write(1, address, size));
      return Races(name, trace);
    };
    EXPECT_EQ(races(kX, 8), 0U) << name;
    EXPECT_EQ(races(to, 4), 0U) << name;
    EXPECT_EQ(races(to + 4, 4), 1U) << name;
    EXPECT_EQ(races(to + 7, 1), 1U) << name;
    EXPECT_EQ(races(to + 8, 8), 0U) << name;
    // What the destination was before is gone.
    EXPECT_EQ(Races(name, {Fork(0, 1), Write(0, to), Copy(0, to, kX, 8), Write(1, to)}), 0U)
        << name;
    // Ranges that overlap.
    EXPECT_EQ(Races(name, {Fork(0, 1), Write(0, kX, 16), Clear(0, kX + 8, 8),
                           Copy(0, kX + 8, kX, 16), Clear(0, kX, 8), Write(1, kX + 16, 8)}),
              0U)
        << name;
    EXPECT_EQ(Races(name, {Fork(0, 1), Write(0, kX, 8), Copy(0, kX + 4, kX, 16), Clear(0, kX, 4),
                           Write(1, kX + 11, 1)}),
              1U)
        << name;
  }
}

// The moved history tells of bytes that it covers in part still.
TEST(History, MovedByLessThanItsAccessIsRacyWhereItIsNow) {
  for (const std::string& name : kDirect) {
    const auto detector =
        RunOn(name, {Fork(0, 1), Write(1, kX + 6, 16), Copy(0, kX - 8, kX, 24), Write(0, kX, 16)});
    std::uint64_t bytes = 0;
    for (const auto& [byte, event] : FirstRaces(*detector)) {
      EXPECT_LT(byte, kX + 14) << name;
      ++bytes;
    }
    EXPECT_EQ(bytes, 14U) << name;
  }
}

TEST(History, LocksAndKeysMoveWithWhatTheyLieIn) {
  constexpr std::uint64_t kObject = 0x70000, kTo = 0x70030;
  for (const char* name : {"basicvc", "djit+", "fasttrack", "multirace", "pacer", "racetrack"}) {
    // Few locks and a long range, and many and a short one.
    for (const int others : {0, 100}) {
      const auto races = [&](std::uint64_t from, std::uint64_t size, std::uint64_t lock) {
        std::vector<Event> trace{Fork(0, 1)};
        for (int i = 0; i < others; ++i) {
          trace.push_back(Acquire(0, 0x90000 + i));
          trace.push_back(Release(0, 0x90000 + i));
        }
        for (const Event& event : {Acquire(0, kObject + 5), Write(0, kX), Copy(0, kTo, from, size),
                                   Release(0, lock), Acquire(1, lock), Write(1, kX)}) {
          trace.push_back(event);
        }
        return Races(name, trace);
      };
      EXPECT_EQ(races(kObject, 64, kTo + 5), 0U) << name;
      EXPECT_EQ(races(kObject + 4, 2, kTo + 1), 0U) << name;
      // A key that is published, moves, and is asked for.
      const auto handed_over = [&](std::uint64_t from) {
        const Event before = MakeEvent(EventKind::kHappensBefore, 0, kObject + 5);
        const Event after = MakeEvent(EventKind::kHappensAfter, 1, kTo + 5);
        return Races(
            name, {Fork(0, 1), Write(0, kX), before, Copy(0, kTo, from, 6), after, Write(1, kX)});
      };
      EXPECT_EQ(handed_over(kObject), 0U) << name;
      // (RaceTrack needs more evidence than two writes.)
      if (name != std::string_view("racetrack")) {
        EXPECT_GT(handed_over(kObject - 1), 0U) << name;
      }
    }
  }
}

TEST(Atomics, DoNotRaceWithOneAnotherButWithPlainAccesses) {
  using enum EventKind;
  const auto relaxed = MemoryOrder::kRelaxed;
  for (const std::string& name : kDirect) {
    EXPECT_EQ(
        Races(name, {Fork(0, 1), Atomic(kAtomicWrite, 0, kX, relaxed),
                     Atomic(kAtomicRmw, 1, kX, relaxed), Atomic(kAtomicRead, 0, kX, relaxed)}),
        0U)
        << name;
    EXPECT_GE(Races(name, {Fork(0, 1), Atomic(kAtomicWrite, 0, kX, relaxed), Read(1, kX)}), 1U)
        << name;
    EXPECT_GE(Races(name, {Fork(0, 1), Write(0, kX), Atomic(kAtomicRead, 1, kX, relaxed)}), 1U)
        << name;
    EXPECT_EQ(Races(name, {Fork(0, 1), Read(0, kX), Atomic(kAtomicRead, 1, kX, relaxed)}), 0U)
        << name;
    // A relaxed access that a later atomic of another thread does not hide.
    EXPECT_GE(Races(name, {Fork(0, 1), Fork(0, 2), Atomic(kAtomicWrite, 1, kX, relaxed),
                           Atomic(kAtomicWrite, 2, kX, MemoryOrder::kRelease),
                           Atomic(kAtomicRead, 0, kX, MemoryOrder::kAcquire), Read(0, kX)}),
              1U)
        << name;
  }
}

TEST(Atomics, OrderByTheirMemoryOrder) {
  using enum EventKind;
  const std::uint64_t flag = kX + 64;
  const auto publish = [&](MemoryOrder store, MemoryOrder load) {
    return std::vector<Event>{Fork(0, 1), Write(0, kX), Atomic(kAtomicWrite, 0, flag, store),
                              Atomic(kAtomicRead, 1, flag, load), Read(1, kX)};
  };
  const auto release = MemoryOrder::kRelease;
  const auto acquire = MemoryOrder::kAcquire;
  const auto relaxed = MemoryOrder::kRelaxed;
  const auto seq_cst = MemoryOrder::kSeqCst;
  for (const char* name : {"basicvc", "djit+", "fasttrack", "acculock", "pacer", "goldilocks",
                           "lard", "literace", "hybrid"}) {
    EXPECT_EQ(Races(name, publish(release, acquire)), 0U) << name;
    EXPECT_EQ(Races(name, publish(seq_cst, seq_cst)), 0U) << name;
    EXPECT_EQ(Races(name, publish(release, relaxed)), 1U) << name;
    EXPECT_EQ(Races(name, publish(relaxed, acquire)), 1U) << name;
    // A release store starts a new sequence, a read-modify-write continues the old one.
    const auto third = [&](EventKind kind) {
      return std::vector<Event>{Fork(0, 1),
                                Fork(0, 2),
                                Write(0, kX),
                                Atomic(kAtomicWrite, 0, flag, release),
                                Atomic(kind, 2, flag, release),
                                Atomic(kAtomicRead, 1, flag, acquire),
                                Read(1, kX)};
    };
    EXPECT_EQ(Races(name, third(kAtomicWrite)), 1U) << name;
    EXPECT_EQ(Races(name, third(kAtomicRmw)), 0U) << name;
    // Another half of the word is another atomic.
    EXPECT_EQ(Races(name, {Fork(0, 1), Write(0, kX), Atomic(kAtomicWrite, 0, flag, release, 4),
                           Atomic(kAtomicRead, 1, flag + 4, acquire, 4), Read(1, kX)}),
              1U)
        << name;
  }
}

// FastTrack's Figure 5: the read history goes from an epoch to a vector and back.
TEST(OrderingRule, MakesOrderOfRaces) {
  constexpr std::uint64_t kFlag = kX, kValue = kX + 0x40;
  const std::vector<Event> forks = {Fork(0, 1), Fork(0, 2), Fork(0, 3)};
  const std::vector<Event> stored_first = {Write(1, kValue), Write(1, kFlag), Read(2, kFlag),
                                           Read(2, kValue)};
  // The store is seen by a load that nobody tells of.
  const std::vector<Event> loaded_first = {Read(2, kFlag), Write(1, kValue), Write(1, kFlag),
                                           Read(2, kValue)};
  // The same the other way round.
  const std::vector<Event> other_way = {Write(2, kFlag), Read(1, kFlag), Write(1, kValue),
                                        Read(2, kValue)};
  const auto races = [&](const char* name, const auto& trace, Meeting meeting) {
    const auto detector = RunOn(name, {});
    detector->SetOrderingRule([=](const Access& first, const Access& second) {
      return first.address == kFlag && second.address == kFlag ? meeting : Meeting::kRace;
    });
    detector->OnEvents(forks, 0);
    detector->OnEvents(trace, forks.size());
    const std::uint64_t found = detector->race_count();
    detector->OnEvent(Read(3, kValue), forks.size() + trace.size());
    EXPECT_EQ(detector->race_count(), found + 1) << name << ": another thread";
    return found;
  };
  for (const char* name : {"fasttrack", "acculock"}) {
    for (const auto& trace : {stored_first, loaded_first}) {
      EXPECT_EQ(races(name, trace, Meeting::kNoOrder), 1U) << name;
      EXPECT_EQ(races(name, trace, Meeting::kOrder), 0U) << name;
      EXPECT_EQ(races(name, trace, Meeting::kMutualOrder), 0U) << name;
    }
    EXPECT_EQ(races(name, other_way, Meeting::kOrder), 1U) << name;
    EXPECT_EQ(races(name, other_way, Meeting::kMutualOrder), 0U) << name;
  }
}

// Who polls comes after the other thread when it does, and not for ever.
TEST(OrderingRule, OrdersWhoPolls) {
  constexpr std::uint64_t kFlag = kX, kValue = kX + 0x40, kOther = kX + 0x80;
  const std::vector<Event> forks = {Fork(0, 1), Fork(0, 2)};
  const auto poll = [] { return Atomic(EventKind::kAtomicRead, 2, kX, MemoryOrder::kAcquire); };
  const auto races = [&](const char* name, const std::vector<Event>& trace, Meeting meeting) {
    const auto detector = RunOn(name, {});
    detector->SetOrderingRule([=](const Access& first, const Access& second) {
      return first.address == kFlag && second.address == kFlag ? meeting : Meeting::kRace;
    });
    detector->OnEvents(forks, 0);
    detector->OnEvents(trace, forks.size());
    return detector->race_count();
  };
  for (const char* name : {"fasttrack", "acculock"}) {
    const std::vector<Event> stored_first = {Write(1, kValue), Write(1, kFlag), poll(),
                                             Read(2, kValue)};
    EXPECT_EQ(races(name, stored_first, Meeting::kPolled), 0U) << name;
    // It is told of before it is made, and saw what was stored meanwhile.
    const std::vector<Event> stored_meanwhile = {poll(), Write(1, kValue), Write(1, kFlag),
                                                 Read(2, kValue)};
    EXPECT_EQ(races(name, stored_meanwhile, Meeting::kPolled), 0U) << name;
    // The second store is not told of.
    const std::vector<Event> stored_again = {Write(1, kFlag),  poll(), Read(2, kOther),
                                             Write(1, kValue), poll(), Read(2, kValue)};
    EXPECT_EQ(races(name, stored_again, Meeting::kPolled), 0U) << name;
    EXPECT_EQ(races(name, stored_again, Meeting::kNoOrder), 1U) << name;
    const std::vector<Event> written_later = {Write(1, kFlag), poll(), Read(2, kOther),
                                              Write(1, kValue), Read(2, kValue)};
    EXPECT_EQ(races(name, written_later, Meeting::kPolled), 1U) << name;
    EXPECT_EQ(races(name, written_later, Meeting::kOrder), 0U) << name;
  }
}

// Of very many words that are polled none is forgotten, though the order becomes a coarser one.
TEST(OrderingRule, OrdersWhoPollsMany) {
  constexpr std::uint64_t kWords = 100, kValue = kX + 0x4000;
  const auto detector = RunOn("fasttrack", {});
  detector->SetOrderingRule([=](const Access& first, const Access&) {
    return first.address < kValue ? Meeting::kPolled : Meeting::kRace;
  });
  std::vector<Event> trace = {Fork(0, 1), Fork(0, 2)};
  const auto poll = [&](std::uint64_t word) {
    trace.push_back(Atomic(EventKind::kAtomicRead, 2, kX + 8 * word, MemoryOrder::kAcquire));
  };
  for (std::uint64_t word = 0; word < kWords; ++word) {
    trace.push_back(Write(1, kX + 8 * word));
    poll(word);
  }
  for (std::uint64_t word = 0; word < kWords; ++word) {
    trace.push_back(Write(1, kValue + 8 * word));
    poll(word);
    trace.push_back(Read(2, kValue + 8 * word));
  }
  detector->OnEvents(trace, 0);
  EXPECT_EQ(detector->race_count(), 0U);
}

TEST(FastTrack, CountsItsRules) {
  const std::vector<Event> trace{
      Write(0, kX),                           // write exclusive
      Fork(0, 1),   Read(1, kX),              // read exclusive
      Read(0, kX),                            // read share
      Read(0, kX),  End(1),      Join(0, 1),  // read shared
      Write(0, kX),                           // write shared
      Read(0, kX),                            // read exclusive
      Read(0, kX),                            // read same epoch
      Write(0, kX),                           // write same epoch
  };
  const auto detector = RunOn("fasttrack", trace);
  EXPECT_TRUE(detector->races().empty());
  EXPECT_EQ(Value(*detector, "write exclusive"), 1U);
  EXPECT_EQ(Value(*detector, "write shared"), 1U);
  EXPECT_EQ(Value(*detector, "write same epoch"), 1U);
  EXPECT_EQ(Value(*detector, "read exclusive"), 2U);
  EXPECT_EQ(Value(*detector, "read share"), 1U);
  EXPECT_EQ(Value(*detector, "read shared"), 1U);
  EXPECT_EQ(Value(*detector, "read same epoch"), 1U);
}

TEST(Eraser, MissesInitialisationAndReadSharing) {
  // The first thread's accesses are not checked, unordered as they are.
  const std::vector<Event> initialised{Fork(0, 1), Write(0, kX), Read(1, kX)};
  EXPECT_EQ(Races("eraser", initialised), 0U);
  EXPECT_EQ(Races("lockset", initialised), 1U);
  EXPECT_EQ(Races("eraser", {Fork(0, 1), Write(0, kX), Write(1, kX)}), 1U);
}

TEST(Eraser, IsBlindToForkAndJoin) {
  const std::vector<Event> trace{Write(0, kX), Fork(0, 1), Write(1, kX),
                                 End(1),       Join(0, 1), Write(0, kX)};
  EXPECT_GT(Races("eraser", trace), 0U);
  EXPECT_GT(Races("lockset", trace), 0U);
  for (const char* name : {"fasttrack", "hybrid", "racetrack", "multirace", "acculock"}) {
    EXPECT_EQ(Races(name, trace), 0U) << name;
  }
}

TEST(Eraser, SharedSideProtectsReadsOnly) {
  const auto with = [](EventKind acquire, EventKind release, EventKind access) {
    std::vector<Event> trace{Fork(0, 1), Fork(0, 2)};
    for (ThreadId t = 0; t < 3; ++t) {
      trace.push_back(MakeEvent(t == 0 ? EventKind::kAcquire : acquire, t, kLock));
      trace.push_back(MakeEvent(t == 0 ? EventKind::kWrite : access, t, kX, 8));
      trace.push_back(MakeEvent(t == 0 ? EventKind::kRelease : release, t, kLock));
    }
    return trace;
  };
  using enum EventKind;
  for (const char* name : {"eraser", "lockset", "hybrid", "acculock", "fasttrack"}) {
    EXPECT_EQ(Races(name, with(kAcquireShared, kReleaseShared, kRead)), 0U) << name;
    EXPECT_GT(Races(name, with(kAcquireShared, kReleaseShared, kWrite)), 0U) << name;
    EXPECT_EQ(Races(name, with(kAcquire, kRelease, kWrite)), 0U) << name;
  }
}

// Readers write to places of their own, the writer looks at all of them.
TEST(Eraser, SharedSideProtectsFromTheWriterInPairsOnly) {
  using enum EventKind;
  std::vector<Event> trace{Fork(0, 1), Fork(0, 2)};
  const auto under = [&](EventKind acquire, ThreadId thread, EventKind access, EventKind release) {
    trace.push_back(MakeEvent(acquire, thread, kLock));
    trace.push_back(MakeEvent(access, thread, kX, 8));
    trace.push_back(MakeEvent(release, thread, kLock));
  };
  under(kAcquireShared, 1, kWrite, kReleaseShared);
  under(kAcquire, 2, kRead, kRelease);
  under(kAcquireShared, 1, kWrite, kReleaseShared);
  under(kAcquire, 0, kWrite, kRelease);
  for (const char* name : {"hybrid", "acculock", "fasttrack"}) EXPECT_EQ(Races(name, trace), 0U);
  EXPECT_GT(Races("lockset", trace), 0U) << "no lock is held for writing at all writes";
  under(kAcquireShared, 2, kWrite, kReleaseShared);
  under(kAcquireShared, 1, kRead, kReleaseShared);
  for (const char* name : {"hybrid", "acculock", "fasttrack"}) EXPECT_GT(Races(name, trace), 0U);
}

TEST(RaceTrack, NeedsEvidenceBeforeItReports) {
  std::vector<Event> trace{Fork(0, 1)};
  std::uint64_t found_after = 0;
  for (std::uint64_t i = 1; i <= 8 && found_after == 0; ++i) {
    trace.push_back(Write(i % 2, kX));
    if (Races("racetrack", trace) > 0) found_after = i;
  }
  // Virgin, Exclusive0, Exclusive1, Shared-Modify1, Exclusive2, and concurrent again.
  EXPECT_EQ(found_after, 5U);
}

TEST(MultiRace, ComparesClocksOnlyWhenTheLocksetIsEmpty) {
  std::vector<Event> locked{Fork(0, 1)};
  for (ThreadId i = 0; i < 10; ++i) {
    locked.insert(locked.end(), {Acquire(i % 2, kLock), Write(i % 2, kX), Release(i % 2, kLock)});
  }
  EXPECT_EQ(Value(*RunOn("multirace", locked), "vector clocks compared"), 0U);
  const std::vector<Event> unlocked{Fork(0, 1), Write(0, kX), Write(1, kX)};
  EXPECT_EQ(Value(*RunOn("multirace", unlocked), "vector clocks compared"), 1U);
  EXPECT_EQ(Races("multirace", unlocked), 1U);
}

TEST(LiteRace, SamplesColdCodeFullyAndHotCodeRarely) {
  std::vector<Event> trace;
  for (std::uint64_t i = 0; i < 200000; ++i) trace.push_back(Read(0, kX + 8 * (i % 64), 8, 0x1000));
  for (std::uint64_t i = 0; i < 50; ++i) trace.push_back(Read(0, kX, 8, 0x9000));
  const auto detector = RunOn("literace", trace);
  const std::uint64_t sampled = Value(*detector, "sampled accesses");
  EXPECT_GE(sampled, 1050U);
  EXPECT_LE(sampled, 6000U);
}

TEST(Barrier, OrdersARoundAndNotTheNext) {
  const auto enter = [](ThreadId t) { return MakeEvent(EventKind::kBarrierEnter, t, kLock); };
  const auto leave = [](ThreadId t) { return MakeEvent(EventKind::kBarrierLeave, t, kLock); };
  for (const char* name :
       {"basicvc", "djit+", "fasttrack", "pacer", "goldilocks", "hybrid", "acculock"}) {
    EXPECT_EQ(Races(name, {Fork(0, 1), Write(0, kX), enter(0), enter(1), leave(1), Write(1, kX)}),
              0U)
        << name;
    // T0 is in its second round already when T1 leaves the first: not ordered after T0's new write.
    EXPECT_EQ(Races(name, {Fork(0, 1), enter(0), enter(1), leave(0), Write(0, kX), enter(0),
                           leave(1), Read(1, kX)}),
              1U)
        << name;
  }
}

std::vector<Event> InScope(ThreadId t, std::uint64_t scopes, std::vector<Event> events) {
  Event begin = MakeEvent(EventKind::kUntrackThread, t);
  begin.aux = scopes;
  Event end = MakeEvent(EventKind::kTrackThread, t);
  end.aux = scopes;
  events.insert(events.begin(), begin);
  events.push_back(end);
  return events;
}

std::vector<Event> Concat(const std::vector<std::vector<Event>>& parts) {
  std::vector<Event> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// LARD, section 5.2: each extension switched off gives false or missed races.
TEST(Lard, Ablations) {
  struct Case {
    const char* what;
    std::vector<Event> trace;
    bool race;             // LARD's verdict
    const char* ablation;  // the only single ablation that gets it wrong
  };
  Event identity = MakeEvent(EventKind::kIdentity, 1);
  identity.other = 0;
  const std::vector<Case> cases{
      {"a race of the runtime itself",
       Concat({{Fork(0, 1)}, InScope(0, 1, {Write(0, kX)}), InScope(1, 1, {Write(1, kX)})}), false,
       "lard-allmem"},
      {"a race hidden by a lock of the runtime",
       Concat({{Fork(0, 1), Write(0, kX)},
               InScope(0, 2, {Acquire(0, kLock), Release(0, kLock)}),
               InScope(1, 2, {Acquire(1, kLock), Release(1, kLock)}),
               {Write(1, kX)}}),
       true, "lard-allsync"},
      {"memory freed and reused",
       {Fork(0, 1), Write(0, kX), Clear(0, kX, 8), Write(1, kX)},
       false,
       "lard-noclear"},
      {"an object that was moved between two racing accesses",
       {Fork(0, 1), Write(0, kX), Copy(0, kX + 0x100, kX, 8), Clear(0, kX, 8),
        Write(1, kX + 0x100)},
       true,
       "lard-nocopy"},
      {"two logical threads on one carrier",
       {Fork(0, 1), identity, Write(0, kX), Write(1, kX)},
       true,
       "lard-noidentity"},
  };
  for (const Case& c : cases) {
    for (const LardVariant& variant : LardVariants()) {
      const bool wrong = variant.name == c.ablation || variant.name == "lard-naive";
      EXPECT_EQ(Races(variant.name, c.trace) > 0, c.race != wrong)
          << c.what << ": " << variant.name;
    }
  }
}

TEST(Tracking, RangesAreCutExactly) {
  const Event untrack = MakeEvent(EventKind::kUntrack, 0, kX + 2, 4);
  const Event track_again = MakeEvent(EventKind::kTrack, 0, kX + 3, 1);
  for (const std::string& name : kDirect) {
    const auto races = [&](std::uint64_t offset) {
      return Races(name,
                   {Fork(0, 1), untrack, track_again, Write(0, kX), Write(1, kX + offset, 1)});
    };
    for (const std::uint64_t offset : {0, 1, 3, 6, 7})
      EXPECT_EQ(races(offset), 1U) << name << offset;
    for (const std::uint64_t offset : {2, 4, 5}) EXPECT_EQ(races(offset), 0U) << name << offset;
  }
}

TEST(LookAhead, ForgetsLinesOfPagesWithoutHistory) {
  // A page that has no history any more is given up, and its memory becomes that of another one,
  // while accesses to both are ahead.
  constexpr std::uint64_t kPage = 0x10000, kOther = 0x20000;
  const std::vector<Event> before = {Fork(0, 1), Write(0, kPage + 64), Clear(0, kPage + 64, 64)};
  std::vector<Event> events = {Clear(0, kPage, 4096)};
  events.insert(events.end(), 30, Write(0, kOther + 64));
  events.push_back(Write(1, kPage + 64));
  events.push_back(Write(0, kPage + 64, 8, 1));
  const auto batches = MakeDetector("fasttrack");
  batches->OnEvents(before, 0);
  batches->OnEvents(events, before.size());
  ASSERT_EQ(batches->race_count(), 1U);
  EXPECT_EQ(batches->races().front().second.ip, 1U);
}

TEST(Robustness, NonsenseIsSurvived) {
  // Releases without acquires, joins of unknown threads, events of threads that have been joined.
  std::vector<Event> trace;
  for (int kind = 0; kind <= static_cast<int>(EventKind::kEarlierWrite); ++kind) {
    for (ThreadId t = 0; t < 3; ++t) {
      Event event = MakeEvent(static_cast<EventKind>(kind), t, kX + 4 * t, 9);
      event.other = (t + 1) % 4;
      event.aux = 3 + t;
      trace.push_back(event);
    }
  }
  const std::vector<Event> once = trace;
  for (int i = 0; i < 3; ++i) trace.insert(trace.end(), once.rbegin(), once.rend());
  for (const DetectorInfo& info : Detectors()) {
    const auto detector = RunOn(info.name, trace);
    EXPECT_GE(detector->race_count(), detector->races().size());
    RunOn("tree-spans+" + std::string(info.name), trace);
  }
}

}  // namespace
}  // namespace trapline
