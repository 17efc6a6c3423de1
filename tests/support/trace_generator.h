// Random well-formed executions for property tests, and their shrinking.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "detector/event.h"

namespace trapline {

// What a generated execution may contain. The same options give the same trace.
struct TraceOptions {
  std::uint64_t seed = 1;
  int events = 80;      // about so many
  int max_threads = 5;  // at once, the initial one included
  int generations = 1;  // so many times max_threads are started in all, and live the shorter
  int mutexes = 3;      // taken nested and, sometimes, repeatedly
  int rwlocks = 1;
  int keys = 1;  // happens-before/after
  bool barriers = true;
  bool atomics = true;
  bool remaps = true;    // clear and copy history
  bool overlaps = true;  // accesses of all sizes and alignments, some long; otherwise whole words
  bool joins = true;     // otherwise threads are never joined, nor waited for
  int words = 4;         // 8-byte words of memory that are accessed
  int locations =
      0;  // instructions: 0 = each event has its own; n = one of n for each address and kind
  bool fork_first = false;  // all threads are started before the first access
};

std::vector<Event> GenerateTrace(const TraceOptions& options);

// Whether the events could have happened in this order: locks are held by whom they exclude others
// for, threads act only between fork and join, barriers are left only after they were entered, and
// who waits for another thread joins it next.
bool IsWellFormed(const std::vector<Event>& trace);

// A part of `trace` for which `fails` holds still, and none of whose events can be left out alone.
// `fails(trace)` must hold.
std::vector<Event> ShrinkTrace(std::vector<Event> trace,
                               const std::function<bool(const std::vector<Event>&)>& fails);

// One line an event.
std::string PrintTrace(const std::vector<Event>& trace);

// A number from the environment, as those that say how many traces a test takes.
std::uint64_t FromEnvironment(const char* variable, std::uint64_t otherwise);

}  // namespace trapline
