// The plain twin of all detectors: race detection by definition, quadratic and without any
// cleverness. Orders are graphs of direct edges, closed transitively; memory is a map from bytes to
// the accesses they have seen.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "detector/detector.h"
#include "detector/event.h"

namespace trapline {

enum class ReferenceOrder : std::uint8_t {
  kHappensBefore,     // all synchronisation
  kWithoutLockEdges,  // lock edges left out, but a common lock protects (O'Callahan and Choi)
};

// What a detector remembers of a byte after its first race is its own affair, so a byte that
// inherits such a history by a copy is not compared from then on.
struct ReferenceRaces {
  std::set<std::uint64_t> incomparable;  // bytes without a first race that must not be compared
  std::map<std::uint64_t, std::size_t> first_race;  // byte -> event that completes its first race
  std::set<std::pair<std::size_t, std::size_t>> pairs;  // all racing pairs of events, earlier first
  std::set<std::pair<std::uint64_t, std::uint64_t>> locations;  // their instructions, smaller first
};

// `trace` must be well-formed.
ReferenceRaces FindRaces(const std::vector<Event>& trace, ReferenceOrder order);

// The same view of what a detector reported; the detector must have been made with all_races.
std::map<std::uint64_t, std::size_t> FirstRaces(const Detector& detector);

}  // namespace trapline
