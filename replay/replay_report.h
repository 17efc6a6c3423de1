// What a replay found, for people and for programs. The texts of races are the same, byte for byte,
// whenever the log and the detectors are; times and memory are only in the comparison.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "replay/log_index.h"
#include "replay/replayer.h"
#include "replay/symbolizer.h"

namespace trapline {

// Leaves out the races that code of the C++ library makes which is linked into the program's file,
// as online detection does (symbols/linked_library.h).
void DropLinkedLibraryRaces(LogSymbolizer& symbolizer, ReplayResult* result);

// The races of each detector, one for each pair of places, in order of discovery.
std::string RaceReport(const LogIndex& index, const ReplayResult& result,
                       LogSymbolizer& symbolizer);

// A table of the detectors side by side: pairs of places found, and how many of them the detector
// `truth` (one of the result's) found too, missed by comparison, or did not find; time; memory;
// then each detector's own statistics.
std::string ComparisonReport(const ReplayResult& result, const std::string& truth);

// Both as JSON; the comparison only if `truth` is not empty.
nlohmann::json JsonReport(const LogIndex& index, const ReplayResult& result,
                          const std::string& truth, LogSymbolizer& symbolizer);

}  // namespace trapline
