// Drives race detectors over a trap log: any number of them in one pass, each over all events or
// split over shards.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "detector/detector.h"
#include "replay/event_decoder.h"
#include "replay/log_index.h"
#include "replay/status.h"

namespace trapline {

struct ReplayOptions {
  std::vector<std::string> detectors;  // names as MakeDetector takes them
  std::string filter;                  // put in front of each, e.g. "tree"; empty = none
  DetectorOptions detector_options;
  // Memory is split by address over this many instances of each detector, each in a thread of its
  // own. The result is the same for any number: detectors whose decisions depend on accesses to
  // other addresses (samplers, filters) run unsplit, and so does a log in which accesses lie across
  // moved memory, or in which the ordering rule orders threads.
  unsigned shards = 1;
  Sequence last = kLastSequence;  // stop after it; never beyond what is complete
  // For Detector::SetOrderingRule; may be empty. Called by one thread at a time.
  OrderingRule ordering_rule;
  // Called now and then with the events done so far.
  std::function<void(std::uint64_t)> progress;
};

struct DetectorResult {
  std::string name;
  std::vector<Race> races;       // in order of discovery, one for each pair of places
  std::uint64_t race_count = 0;  // found, repetitions included
  std::vector<Statistic> statistics;
  unsigned shards = 1;             // instances that were used
  std::uint64_t cpu_ns = 0;        // processor time spent in it
  std::uint64_t memory_bytes = 0;  // heap it held at its end (approximate when several run)
};

// How a thread came to be.
struct ThreadCreation {
  ThreadId parent = 0;
  std::uint64_t ip = 0;     // where; 0 = unknown
  std::uint32_t stack = 0;  // in the stack table; 0 = none
};

struct ReplayResult {
  std::uint64_t events = 0;
  std::map<EventKind, std::uint64_t> kinds;
  StackTable stacks;
  std::map<ThreadId, ThreadCreation> creations;  // by child
  std::vector<DetectorResult> detectors;
  std::uint64_t wall_ns = 0;
  std::uint64_t read_ns = 0;  // part of it spent reading and decoding the log
};

// Whether the detector's verdict on an address depends on synchronisation and on accesses to that
// address alone, so that memory can be split.
bool Shardable(const std::string& detector);

Status Replay(const LogIndex& index, const ReplayOptions& options, ReplayResult* result);

}  // namespace trapline
