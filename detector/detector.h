// What every race detector offers to those who feed it events: the interface, the reports, the
// registry.
//
// A detector sees one execution: events in their observed total order, then Finish(). It owns all
// its state, reads no clock and no file, and gives the same races for the same events on every
// machine. A detector belongs to one thread at a time; distinct detectors share nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "detector/event.h"

namespace trapline {

// One memory access of an execution, as a report shows it.
struct Access {
  std::uint64_t index = 0;    // position of its event in the stream, from 0
  std::uint64_t address = 0;  // [address, address+size): all bytes of the access
  std::uint64_t size = 0;     // bytes
  std::uint64_t ip = 0;       // program address of the instruction; 0 = unknown
  std::uint32_t stack = 0;    // index in the log's stack table; 0 = none
  ThreadId thread = 0;
  EventKind kind = EventKind::kRead;  // kRead .. kAtomicRmw

  friend bool operator==(const Access&, const Access&) = default;
};

// Two conflicting accesses that the detector holds for unordered (or, in lockset detectors,
// unprotected).
struct Race {
  Access first;               // the earlier access in the stream
  Access second;              // the access at which the race was found; first.index < second.index
  std::uint64_t address = 0;  // [address, address+size): bytes known to be touched by both
  std::uint64_t size = 0;

  friend bool operator==(const Race&, const Race&) = default;
};

// What two conflicting accesses that nothing in the events orders are.
enum class Meeting : std::uint8_t {
  kRace,
  // The others are operations of atomics, though nothing in the events says so.
  kNoOrder,  // they do not synchronise
  kOrder,    // who reads comes after who writes
  // So it does now, and whenever it reads there again: each of its reads, which are atomic ones, is
  // told, while the writes are not known for what they are.
  kPolled,
  // They do, and what else the two threads do by such operations is not known either.
  kMutualOrder,
};

// Whether it orders the two threads.
constexpr bool Orders(Meeting meeting) {
  return meeting != Meeting::kRace && meeting != Meeting::kNoOrder;
}

// Judges two of them, the first one the earlier one.
using OrderingRule = std::function<Meeting(const Access& first, const Access& second)>;

// "write-read race" and the like: first access, then second.
std::string_view RaceKindName(const Race& race);

// One line of a detector's own statistics. Where `whole` is not 0, `value` is a share of it.
struct Statistic {
  std::string name;  // e.g. "read same epoch"
  std::uint64_t value = 0;
  std::uint64_t whole = 0;

  friend bool operator==(const Statistic&, const Statistic&) = default;
};

struct DetectorOptions {
  // false: the first race of each unordered pair of instructions (each address, where both are
  // unknown) is kept and the others are only counted. true: all that the algorithm reports (tests,
  // small traces).
  bool all_races = false;
  // Sampling detectors (PACER): share of time that is sampled, in [0, 1]. Sampling events in the
  // stream take precedence over it.
  double sampling_rate = 1.0;
  // Seed of whatever a detector draws at random; the same seed gives the same answer.
  std::uint64_t seed = 1;
  // FastTrack: bytes of cells from which on what all threads know of is forgotten, and neighbours
  // that were accessed alike are remembered as one. Then the index of a race's first access may be
  // that of such a neighbour, and a long access that races with several of them is one race, with
  // one of them. Every thread but the first must have been started by another one. 0 = never.
  std::uint64_t condense_from = 0;
  // Events after which a sampling detector draws anew whether the next period is sampled; > 0.
  std::uint64_t sampling_period = 4096;
};

class Detector {
 public:
  Detector() = default;
  Detector(const Detector&) = delete;
  Detector& operator=(const Detector&) = delete;
  virtual ~Detector() = default;

  // The next event of the execution. `index` is its position in the whole stream and grows from
  // call to call; a filter in front may leave gaps.
  virtual void OnEvent(const Event& event, std::uint64_t index) = 0;

  // The next events, at positions first_index, first_index + 1, ...: the same as OnEvent for each
  // of them, but one virtual call for all.
  virtual void OnEvents(std::span<const Event> events, std::uint64_t first_index) = 0;

  // Whether kMoment, kEarlierRead and kEarlierWrite may stand for accesses that a thread repeats.
  virtual bool TakesRepeats() const { return false; }

  // Whether kTick and kLateRelease may stand for taking and giving back locks. Asked before the
  // first event; those that take them take what is told of repeats, too.
  virtual bool TakesLateReleases() const { return false; }

  // To be asked from now on before each race is reported. Detectors that keep no clocks ask nobody.
  virtual void SetOrderingRule(const OrderingRule& /*rule*/) {}

  // The execution is over; called once. Engines that work on windows solve their last window here.
  virtual void Finish() {}

  // Races found so far, in the order of their discovery. Valid until the next event.
  virtual std::span<const Race> races() const = 0;

  // How many races were found, those left out of races() for their instructions' sake included.
  virtual std::uint64_t race_count() const { return races().size(); }

  // The algorithm's own counts, always in the same order.
  virtual std::vector<Statistic> statistics() const = 0;

  // The name under which MakeDetector knows it.
  virtual std::string_view name() const = 0;
};

// A detector that MakeDetector can build.
struct DetectorInfo {
  std::string_view name;         // e.g. "fasttrack"
  std::string_view description;  // one line for users
};

// All detectors, in the order in which users read about them.
std::span<const DetectorInfo> Detectors();

// Their names, separated by ", ", for messages.
std::string DetectorNames();

// Builds the detector called `name`. A filter goes in front with a plus sign: "tree+fasttrack" and
// "tree-spans+fasttrack" put TREE before FastTrack. Null when there is no detector of that name:
// the caller says so to the user and names those of Detectors().
std::unique_ptr<Detector> MakeDetector(std::string_view name, const DetectorOptions& options = {});

}  // namespace trapline
