// Properties of the detectors that hold for every execution, checked on random ones.
// TRAPLINE_TRACES sets how many, TRAPLINE_FIRST_TRACE the seed of the first one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "detector/tree_filter.h"
#include "tests/detector/trace_builder.h"
#include "tests/support/reference.h"
#include "tests/support/trace_generator.h"
#include "tools/first_access_filter.h"

namespace trapline {
namespace {

std::uint64_t TraceCount() { return FromEnvironment("TRAPLINE_TRACES", 10000); }

// Executions of all sorts, the kind depending on the seed.
TraceOptions OptionsFor(std::uint64_t seed) {
  TraceOptions options;
  options.seed = seed;
  options.events = 20 + static_cast<int>(seed % 7) * 15;
  options.max_threads = 2 + static_cast<int>(seed % 5);
  options.mutexes = 1 + static_cast<int>(seed % 4);
  options.rwlocks = static_cast<int>(seed / 2 % 2);
  options.keys = static_cast<int>(seed / 3 % 2);
  options.barriers = seed / 4 % 2 == 0;
  options.atomics = seed / 5 % 2 == 0;
  options.remaps = seed / 7 % 3 == 0;
  options.overlaps = seed / 11 % 4 != 0;
  options.words = 1 + static_cast<int>(seed / 13 % 4);
  if (seed / 17 % 3 == 0) {
    options.generations = 4;
    options.events *= 2;
  }
  return options;
}

using Check = std::function<std::string(const std::vector<Event>&)>;

// `check` says what is wrong with a trace, or nothing.
void ForAllTraces(const Check& check, void (*adjust)(TraceOptions*) = nullptr) {
  const std::uint64_t first = FromEnvironment("TRAPLINE_FIRST_TRACE", 1);
  for (std::uint64_t seed = first; seed < first + TraceCount(); ++seed) {
    TraceOptions options = OptionsFor(seed);
    if (adjust != nullptr) adjust(&options);
    const std::vector<Event> trace = GenerateTrace(options);
    ASSERT_TRUE(IsWellFormed(trace)) << "seed " << seed << "\n" << PrintTrace(trace);
    if (check(trace).empty()) continue;
    const std::vector<Event> small =
        ShrinkTrace(trace, [&](const std::vector<Event>& t) { return !check(t).empty(); });
    FAIL() << "seed " << seed << ": " << check(small) << "\n" << PrintTrace(small);
  }
}

std::string Describe(const std::map<std::uint64_t, std::size_t>& races) {
  std::string text;
  for (const auto& [byte, event] : races) {
    text += " " + std::to_string(byte) + "@" + std::to_string(event);
  }
  return text;
}

std::map<std::uint64_t, std::size_t> Comparable(std::map<std::uint64_t, std::size_t> races,
                                                const std::set<std::uint64_t>& incomparable) {
  for (const std::uint64_t byte : incomparable) races.erase(byte);
  return races;
}

std::set<std::uint64_t> Bytes(const Detector& detector) {
  std::set<std::uint64_t> bytes;
  for (const auto& [byte, event] : FirstRaces(detector)) bytes.insert(byte);
  return bytes;
}

bool Includes(const std::set<std::uint64_t>& large, const std::set<std::uint64_t>& small) {
  return std::includes(large.begin(), large.end(), small.begin(), small.end());
}

// Racy bytes and the event that completes the first race of each.
TEST(Property, PreciseDetectorsAgreeWithTheDefinition) {
  ForAllTraces([](const std::vector<Event>& trace) -> std::string {
    const ReferenceRaces truth = FindRaces(trace, ReferenceOrder::kHappensBefore);
    for (const char* name : {"basicvc", "djit+", "fasttrack", "goldilocks", "pacer", "lard",
                             "literace", "tree-exact+fasttrack"}) {
      const auto found = Comparable(FirstRaces(*RunOn(name, trace)), truth.incomparable);
      if (found != truth.first_race) {
        return std::string(name) + " finds" + Describe(found) + ", but there are" +
               Describe(truth.first_race);
      }
    }
    return "";
  });
}

// Others' traces may begin in the midst of a program: threads turn up that nobody has started.
TEST(Property, ThreadsThatNobodyHasStarted) {
  std::uint64_t racy = 0, left_out = 0;
  ForAllTraces([&](const std::vector<Event>& trace) -> std::string {
    std::vector<Event> rest = trace;
    // Of bytes with a racy history that was copied no two detectors need say the same.
    std::erase_if(rest, [](const Event& event) { return event.kind == EventKind::kCopyHistory; });
    const std::size_t started = rest.size();
    std::erase_if(rest, [](const Event& event) {
      return event.kind == EventKind::kFork && event.other % 2 == 1;
    });
    left_out += started - rest.size();
    const auto expected = Bytes(*RunOn("basicvc", rest));
    racy += expected.size();
    for (const char* name : {"djit+", "fasttrack", "goldilocks"}) {
      if (Bytes(*RunOn(name, rest)) != expected) return std::string(name) + " finds other bytes";
    }
    return "";
  });
  EXPECT_GT(left_out, TraceCount() / 2);
  EXPECT_GT(racy, TraceCount() / 4);
}

// BasicVC keeps everything, so that it finds not only the first races: each pair it reports is one.
TEST(Property, EveryReportedPairIsARace) {
  ForAllTraces([](const std::vector<Event>& trace) -> std::string {
    const ReferenceRaces truth = FindRaces(trace, ReferenceOrder::kHappensBefore);
    for (const char* name : {"basicvc", "djit+", "fasttrack", "goldilocks", "pacer", "multirace",
                             "tree+fasttrack", "tree-spans+fasttrack", "tree-exact+basicvc"}) {
      const auto detector = RunOn(name, trace);
      for (const Race& race : detector->races()) {
        if (!truth.pairs.contains({race.first.index, race.second.index})) {
          return std::string(name) + " reports the pair " + std::to_string(race.first.index) +
                 ", " + std::to_string(race.second.index);
        }
        const Event& first = trace[race.first.index];
        if (race.first.address != first.address || race.first.size != first.size ||
            race.first.ip != first.ip || race.first.thread != first.thread ||
            race.first.kind != first.kind) {
          return std::string(name) + " misreports event " + std::to_string(race.first.index);
        }
      }
    }
    return "";
  });
}

// AccuLock, Theorems 1 and 2.
TEST(Property, AccuLockLiesBetweenFastTrackAndLockset) {
  ForAllTraces([](const std::vector<Event>& trace) -> std::string {
    // Theorem 2 speaks of a location's first race; histories inherited from racy locations say
    // nothing.
    const ReferenceRaces truth = FindRaces(trace, ReferenceOrder::kHappensBefore);
    std::set<std::uint64_t> fasttrack = Bytes(*RunOn("fasttrack", trace));
    for (const std::uint64_t byte : truth.incomparable) fasttrack.erase(byte);
    const std::set<std::uint64_t> acculock = Bytes(*RunOn("acculock", trace));
    const std::set<std::uint64_t> lockset = Bytes(*RunOn("lockset", trace));
    if (!Includes(acculock, fasttrack))
      return "AccuLock misses a location of FastTrack (Theorem 2)";
    if (!Includes(lockset, acculock)) return "AccuLock has a location LOCKSET has not (Theorem 1)";
    return "";
  });
}

TEST(Property, HybridAgreesWithItsDefinition) {
  ForAllTraces([](const std::vector<Event>& trace) -> std::string {
    const ReferenceRaces truth = FindRaces(trace, ReferenceOrder::kWithoutLockEdges);
    const auto found = Comparable(FirstRaces(*RunOn("hybrid", trace)), truth.incomparable);
    if (found != truth.first_race) {
      return "hybrid finds" + Describe(found) + ", but there are" + Describe(truth.first_race);
    }
    return "";
  });
}

// What the imprecise ones can at most report.
TEST(Property, LocksetFamilyIsOrdered) {
  ForAllTraces([](const std::vector<Event>& trace) -> std::string {
    const std::set<std::uint64_t> lockset = Bytes(*RunOn("lockset", trace));
    for (const char* name : {"eraser", "hybrid", "racetrack", "multirace"}) {
      if (!Includes(lockset, Bytes(*RunOn(name, trace)))) {
        return std::string(name) + " has a location LOCKSET has not";
      }
    }
    if (!Includes(Bytes(*RunOn("djit+", trace)), Bytes(*RunOn("multirace", trace)))) {
      return "MultiRace has a location DJIT+ has not";
    }
    return "";
  });
}

TEST(Property, BatchesAndSingleEventsGiveTheSame) {
  ForAllTraces([](const std::vector<Event>& trace) -> std::string {
    for (const DetectorInfo& info : Detectors()) {
      const auto batch = RunOn(info.name, trace);
      const auto single = MakeDetector(info.name, {.all_races = true});
      for (std::size_t i = 0; i < trace.size(); ++i) single->OnEvent(trace[i], i);
      single->Finish();
      const bool same = std::equal(batch->races().begin(), batch->races().end(),
                                   single->races().begin(), single->races().end()) &&
                        batch->race_count() == single->race_count() &&
                        batch->statistics() == single->statistics();
      if (!same) return std::string(info.name) + " depends on how it is fed";
    }
    return "";
  });
}

// The trace with a line of 64 bytes for each of its words: an access to a whole word becomes one to
// each word of the line.
std::vector<Event> WithLinesForWords(const std::vector<Event>& trace) {
  std::vector<Event> wide;
  for (Event event : trace) {
    const bool whole = IsPlainAccess(event.kind) && event.address % 8 == 0 && event.size == 8;
    const bool history =
        event.kind == EventKind::kClearHistory || event.kind == EventKind::kCopyHistory;
    if (IsAccess(event.kind) || history) event.address *= 8;
    if (history) {
      event.size *= 8;
      event.aux *= 8;
    }
    wide.push_back(event);
    for (int i = 1; whole && i < 8; ++i) {
      event.address += 8;
      wide.push_back(event);
    }
  }
  return wide;
}

// Neighbours that are remembered as one show the races that they show one by one. Only the moment
// of the first access may be a neighbour's.
TEST(Property, JoinedHistoriesShowTheSameRaces) {
  using Key = std::tuple<std::uint64_t, ThreadId, std::uint64_t, EventKind, std::uint64_t>;
  std::uint64_t elsewhere = 0;
  ForAllTraces([&](const std::vector<Event>& trace) -> std::string {
    // Where a thread is not known to have been started, nothing is forgotten.
    constexpr ThreadId kNobodys = 100;
    std::vector<Event> wide = WithLinesForWords(trace);
    wide.insert(wide.begin(), Read(kNobodys, 0x4000));
    const auto races = [&](std::uint64_t condense_from) {
      const auto detector =
          MakeDetector("fasttrack", {.all_races = true, .condense_from = condense_from});
      detector->OnEvents(wide, 0);
      detector->Finish();
      // By bytes, and by lines where a long access races with all words of one: that is a race with
      // one of them.
      std::map<Key, std::uint64_t> places;
      for (const Race& race : detector->races()) {
        const std::uint64_t unit = race.second.size > 64 ? 64 : 1;
        for (std::uint64_t byte = race.address; byte < race.address + race.size; ++byte) {
          places[{byte / unit, race.first.thread, race.first.ip, race.first.kind,
                  race.second.index}] = race.first.index;
        }
      }
      return places;
    };
    const auto one_by_one = races(0);
    const auto joined = races(1);
    if (one_by_one.size() != joined.size()) return "another number of races";
    for (auto a = one_by_one.begin(), b = joined.begin(); a != one_by_one.end(); ++a, ++b) {
      if (a->first != b->first) return "another race";
      elsewhere += a->second != b->second;
    }
    return "";
  });
  EXPECT_GT(elsewhere, TraceCount() / 10);
}

// What all threads know of is forgotten as soon as may be.
TEST(Property, ForgottenHistoriesRaceWithNothing) {
  ForAllTraces([](const std::vector<Event>& trace) -> std::string {
    const bool long_ones = std::ranges::any_of(
        trace, [](const Event& event) { return IsAccess(event.kind) && event.size > 64; });
    const auto races = [&](std::uint64_t condense_from) {
      const auto detector =
          MakeDetector("fasttrack", {.all_races = true, .condense_from = condense_from});
      detector->OnEvents(trace, 0);
      detector->Finish();
      // A long access that races with all of a line is a race with one word of it.
      std::map<std::uint64_t, std::size_t> found;
      for (const auto& [byte, event] : FirstRaces(*detector)) {
        const auto [known, is_new] = found.emplace(long_ones ? byte / 64 : byte, event);
        if (!is_new) known->second = std::min(known->second, event);
      }
      return found;
    };
    return races(0) == races(1) ? "" : "other races";
  });
}

std::vector<Event> Filtered(const std::vector<Event>& trace, TreeMode mode,
                            std::vector<std::size_t>* kept = nullptr) {
  TreeFilter filter(MakeDetector("empty"), mode);
  std::vector<Event> rest;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    if (filter.IsRedundant(trace[i])) continue;
    rest.push_back(trace[i]);
    if (kept != nullptr) kept->push_back(i);
  }
  return rest;
}

// TREE + D has the location pairs of D, where D reports all races: without loss for both kinds of
// order.
TEST(Property, ExactTreeKeepsAllLocationPairs) {
  std::uint64_t dropped = 0;
  ForAllTraces(
      [&](const std::vector<Event>& trace) -> std::string {
        const std::vector<Event> rest = Filtered(trace, TreeMode::kExact);
        dropped += trace.size() - rest.size();
        for (const auto order :
             {ReferenceOrder::kHappensBefore, ReferenceOrder::kWithoutLockEdges}) {
          if (FindRaces(rest, order).locations != FindRaces(trace, order).locations) {
            return "location pairs differ";
          }
        }
        return "";
      },
      [](TraceOptions* options) { options->locations = 2; });
  EXPECT_GT(dropped, TraceCount());  // or there was nothing to see
}

// The published algorithm, for detectors without lock edges and threads that are never joined:
// there its premise holds that equivalent accesses stay equivalent.
TEST(Property, TreeKeepsAllLocationPairs) {
  std::uint64_t dropped = 0;
  ForAllTraces(
      [&](const std::vector<Event>& trace) -> std::string {
        const std::vector<Event> rest = Filtered(trace, TreeMode::kThesis);
        dropped += trace.size() - rest.size();
        if (FindRaces(rest, ReferenceOrder::kWithoutLockEdges).locations !=
            FindRaces(trace, ReferenceOrder::kWithoutLockEdges).locations) {
          return "location pairs differ";
        }
        return "";
      },
      [](TraceOptions* options) {
        options->locations = 2;
        options->fork_first = true;
        options->joins = false;
        options->keys = 0;
        options->barriers = false;
        options->atomics = false;
      });
  EXPECT_GT(dropped, 3 * TraceCount());
}

// What the code cache leaves out, as docs/translator.md says: an access of bytes that the thread
// has accessed so before, by whatever instruction, and has released nothing since.
class CacheFilter {
 public:
  bool Passes(const Event& event) {
    auto& seen = seen_[event.thread];
    if (IsPlainAccess(event.kind))
      return seen.insert({event.kind, event.address, event.size}).second;
    switch (event.kind) {
      case EventKind::kAtomicRead:
      case EventKind::kAcquire:
      case EventKind::kAcquireShared:
      case EventKind::kHappensAfter:
      case EventKind::kJoin:
      case EventKind::kJoinBegin:
      case EventKind::kBarrierLeave:
        break;
      case EventKind::kClearHistory:
      case EventKind::kCopyHistory:
        seen_.clear();
        break;
      default:
        seen.clear();
    }
    return true;
  }

 private:
  std::map<ThreadId, std::set<std::tuple<EventKind, std::uint64_t, std::uint64_t>>> seen_;
};

template <class Filter>
std::vector<Event> PassedBy(const std::vector<Event>& trace) {
  Filter filter;
  std::vector<Event> rest;
  std::copy_if(trace.begin(), trace.end(), std::back_inserter(rest),
               [&](const Event& event) { return filter.Passes(event); });
  return rest;
}

// What `trapline run --log-filter=first` leaves out makes no difference to detectors that look at
// locks and order alone. Eraser also goes by when threads came by a location: to it, a repeated
// access can be the one that shows a race. (RaceTrack can find less or more.)
TEST(Property, FirstAccessesOfEpochsShowTheSameRacyBytes) {
  std::uint64_t dropped = 0;
  ForAllTraces(
      [&](const std::vector<Event>& trace) -> std::string {
        const std::set<std::uint64_t> incomparable =
            FindRaces(trace, ReferenceOrder::kHappensBefore).incomparable;
        const auto racy = [&](const char* name, const std::vector<Event>& events) {
          std::set<std::uint64_t> bytes = Bytes(*RunOn(name, events));
          for (const std::uint64_t byte : incomparable) bytes.erase(byte);
          return bytes;
        };
        const std::vector<Event> cached = PassedBy<CacheFilter>(trace);
        const std::vector<Event> recorded = PassedBy<FirstAccessFilter>(trace);
        dropped += std::min(trace.size() - cached.size(), trace.size() - recorded.size());
        for (const char* name : {"basicvc", "djit+", "fasttrack", "goldilocks", "lard", "acculock",
                                 "lockset", "hybrid", "multirace", "eraser"}) {
          // An access may empty a set of locks without a race, and the next one is left out.
          const bool may_miss = name == std::string("eraser") || name == std::string("lockset");
          const std::set<std::uint64_t> all = racy(name, trace);
          for (const auto* rest : {&cached, &recorded}) {
            const std::set<std::uint64_t> first = racy(name, *rest);
            if (may_miss ? !Includes(all, first) : all != first)
              return std::string(name) + " reports other bytes of the first accesses alone";
          }
        }
        return "";
      },
      [](TraceOptions* options) { options->locations = 1; });
  EXPECT_GT(dropped, TraceCount());
}

// What the agent tells of an execution whose locks are biased (guest-agent/biased_locks.h), as told
// to a detector: with each event its position, of which the execution's own ones are even.
std::vector<std::pair<std::uint64_t, Event>> WithBiasedLocks(const std::vector<Event>& trace,
                                                             std::uint64_t* untold) {
  struct Lock {
    std::optional<ThreadId> biased_to;
    std::uint64_t note = 0;  // the moment after its last untold release; 0: none
    bool held_untold = false;
  };
  std::map<std::uint64_t, Lock> locks;
  std::vector<std::pair<std::uint64_t, Event>> told;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    Event event = trace[i];
    const auto tell_note = [&](std::uint64_t address, Lock& lock) {
      if (lock.note == 0) return;
      Event late = MakeEvent(EventKind::kLateRelease, *lock.biased_to, address);
      late.aux = std::exchange(lock.note, 0);
      told.emplace_back(2 * i, late);
    };
    // Now and then all is told, and when the thread ends.
    for (auto& [address, lock] : locks) {
      const bool ends = event.kind == EventKind::kThreadEnd && lock.biased_to == event.thread;
      if (i % 13 == 0 || ends || event.kind == EventKind::kCopyHistory) tell_note(address, lock);
      if (ends) lock.biased_to.reset();
    }
    if (IsOfLock(event.kind)) {
      Lock& lock = locks[event.address];
      const bool release = IsReleaseOfLock(event.kind);
      if (release) event.aux = i + 1;
      if (event.kind == EventKind::kAcquire && lock.biased_to == event.thread) {
        lock.held_untold = true;
        continue;
      }
      if (event.kind == EventKind::kRelease && std::exchange(lock.held_untold, false)) {
        lock.note = i + 1;
        event.kind = EventKind::kTick;
        event.address = 0;
        ++*untold;
      } else {
        if (lock.biased_to != event.thread || IsOfSharedLock(event.kind)) {
          tell_note(event.address, lock);
          lock.biased_to.reset();
        }
        if (event.kind == EventKind::kRelease) lock.biased_to = event.thread;
      }
    }
    told.emplace_back(2 * i + 1, event);
  }
  return told;
}

TEST(Property, LateReleasesOrderAsThoseInTime) {
  std::uint64_t untold = 0, racy = 0;
  ForAllTraces(
      [&](const std::vector<Event>& trace) -> std::string {
        const auto pairs_of = [](const Detector& detector) {
          std::set<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> pairs;
          for (const Race& race : detector.races())
            pairs.emplace(race.first.index, race.second.index, race.second.address);
          return pairs;
        };
        const auto in_time = MakeDetector("fasttrack", {.all_races = true});
        for (std::size_t i = 0; i < trace.size(); ++i) in_time->OnEvent(trace[i], 2 * i + 1);
        const auto late = MakeDetector("fasttrack", {.all_races = true});
        for (const auto& [position, event] : WithBiasedLocks(trace, &untold))
          late->OnEvent(event, position);
        const auto expected = pairs_of(*in_time);
        racy += expected.size();
        return pairs_of(*late) == expected ? "" : "other races with late releases";
      },
      [](TraceOptions* options) { options->events *= 2; });
  EXPECT_GT(untold, TraceCount());
  EXPECT_GT(racy, TraceCount() / 4);
}

}  // namespace
}  // namespace trapline
