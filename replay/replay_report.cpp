#include "replay/replay_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace trapline {
namespace {

using nlohmann::json;

// What makes two detectors' races the same: the pair of instructions; the address where they are
// unknown.
using PlacePair = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

std::set<PlacePair> PlacePairs(const DetectorResult& detector) {
  std::set<PlacePair> pairs;
  for (const Race& race : detector.races) {
    const auto [low, high] = std::minmax(race.first.ip, race.second.ip);
    pairs.emplace(low, high, high == 0 ? race.address : 0);
  }
  return pairs;
}

struct Agreement {
  std::size_t agreed = 0;
  std::size_t missed = 0;
  std::size_t extra = 0;
};

Agreement Compare(const std::set<PlacePair>& found, const std::set<PlacePair>& truth) {
  Agreement agreement;
  for (const PlacePair& pair : found) ++(truth.contains(pair) ? agreement.agreed : agreement.extra);
  agreement.missed = truth.size() - agreement.agreed;
  return agreement;
}

const DetectorResult* Find(const ReplayResult& result, const std::string& name) {
  for (const DetectorResult& detector : result.detectors) {
    if (detector.name == name) return &detector;
  }
  return nullptr;
}

const char* AccessName(EventKind kind) {
  switch (kind) {
    case EventKind::kRead:
      return "read";
    case EventKind::kWrite:
      return "write";
    case EventKind::kAtomicRead:
      return "atomic read";
    case EventKind::kAtomicWrite:
      return "atomic write";
    default:
      return "atomic update";
  }
}

void AppendAccess(const Access& access, const char* when, const StackTable& stacks,
                  LogSymbolizer& symbolizer, std::string* text) {
  *text += fmt::format("  {} {} of {} bytes at {:#x} by thread {} (event {}), at {}\n", when,
                       AccessName(access.kind), access.size, access.address, access.thread,
                       access.index, PlaceText(symbolizer.Resolve(access.ip)));
  if (access.stack == 0) return;
  const auto stack = stacks.find(access.stack);
  if (stack == stacks.end()) {
    *text += "    (its call stack is not in the log)\n";
    return;
  }
  int depth = 0;
  for (const std::uint64_t frame : stack->second) {
    *text += fmt::format("    #{} {}\n", depth++, PlaceText(symbolizer.Resolve(frame)));
  }
}

json PlaceJson(const Place& place) {
  json object = {{"address", place.address}};
  if (!place.module.empty()) {
    object["module"] = place.module;
    object["build_id"] = place.build_id;
    object["offset"] = place.offset;
  }
  if (!place.function.empty()) object["function"] = place.function;
  if (!place.file.empty()) {
    object["file"] = place.file;
    object["line"] = place.line;
  }
  return object;
}

json AccessJson(const Access& access, const StackTable& stacks, LogSymbolizer& symbolizer) {
  json object = {
      {"kind", AccessName(access.kind)}, {"thread", access.thread},
      {"address", access.address},       {"size", access.size},
      {"event", access.index},           {"place", PlaceJson(symbolizer.Resolve(access.ip))}};
  if (const auto stack = stacks.find(access.stack); access.stack != 0 && stack != stacks.end()) {
    for (const std::uint64_t frame : stack->second) {
      object["stack"].push_back(PlaceJson(symbolizer.Resolve(frame)));
    }
  }
  return object;
}

}  // namespace

std::string RaceReport(const LogIndex& index, const ReplayResult& result,
                       LogSymbolizer& symbolizer) {
  const LogMetadata& metadata = index.metadata();
  std::string text = fmt::format("{}: {} events of {} threads\n",
                                 metadata.program.empty() ? "trap log" : metadata.program,
                                 result.events, index.threads().size());
  for (const DetectorResult& detector : result.detectors) {
    text +=
        fmt::format("\n{}: {} {}\n", detector.name, detector.races.size(),
                    detector.races.size() == 1 ? "pair of places races" : "pairs of places race");
    std::size_t number = 0;
    for (const Race& race : detector.races) {
      text += fmt::format("\n{} {} on {} bytes at {:#x}\n", ++number, RaceKindName(race), race.size,
                          race.address);
      AppendAccess(race.second, "later  ", result.stacks, symbolizer, &text);
      AppendAccess(race.first, "earlier", result.stacks, symbolizer, &text);
    }
  }
  return text;
}

std::string ComparisonReport(const ReplayResult& result, const std::string& truth) {
  const DetectorResult* true_result = Find(result, truth);
  const std::set<PlacePair> true_pairs =
      true_result == nullptr ? std::set<PlacePair>{} : PlacePairs(*true_result);
  std::string text =
      fmt::format("{} events in {:.2f} s, of which {:.2f} s went into reading the log; truth: {}\n",
                  result.events, static_cast<double>(result.wall_ns) / 1e9,
                  static_cast<double>(result.read_ns) / 1e9, truth);
  text += fmt::format("{:<24}{:>8}{:>8}{:>8}{:>8}{:>12}{:>10}{:>10}{:>10}\n", "detector", "found",
                      "agreed", "missed", "extra", "all races", "time s", "Mevent/s", "MiB");
  for (const DetectorResult& detector : result.detectors) {
    const std::set<PlacePair> pairs = PlacePairs(detector);
    const Agreement agreement = Compare(pairs, true_pairs);
    const double seconds = std::max(static_cast<double>(detector.cpu_ns) / 1e9, 1e-9);
    text += fmt::format("{:<24}{:>8}{:>8}{:>8}{:>8}{:>12}{:>10.2f}{:>10.1f}{:>10.1f}\n",
                        detector.name, pairs.size(), agreement.agreed, agreement.missed,
                        agreement.extra, detector.race_count, seconds,
                        static_cast<double>(result.events) / 1e6 / seconds,
                        static_cast<double>(detector.memory_bytes) / (1 << 20));
  }
  for (const DetectorResult& detector : result.detectors) {
    if (detector.statistics.empty()) continue;
    text += fmt::format(
        "\n{}{}\n", detector.name,
        detector.shards > 1 ? fmt::format(" (sums over {} shards)", detector.shards) : "");
    for (const Statistic& statistic : detector.statistics) {
      text += fmt::format("  {:<40}{:>16}", statistic.name, statistic.value);
      if (statistic.whole != 0) {
        text += fmt::format("{:>8.2f}%", 100.0 * static_cast<double>(statistic.value) /
                                             static_cast<double>(statistic.whole));
      }
      text += '\n';
    }
  }
  return text;
}

json JsonReport(const LogIndex& index, const ReplayResult& result, const std::string& truth,
                LogSymbolizer& symbolizer) {
  json report = {{"program", index.metadata().program},
                 {"events", result.events},
                 {"threads", index.threads().size()},
                 {"complete", index.missing().empty()},
                 {"detectors", json::array()}};
  if (!index.missing().empty()) report["missing"] = index.missing();
  const DetectorResult* true_result = Find(result, truth);
  for (const DetectorResult& detector : result.detectors) {
    json entry = {{"name", detector.name}, {"races", json::array()}};
    for (const Race& race : detector.races) {
      entry["races"].push_back({{"kind", RaceKindName(race)},
                                {"address", race.address},
                                {"size", race.size},
                                {"earlier", AccessJson(race.first, result.stacks, symbolizer)},
                                {"later", AccessJson(race.second, result.stacks, symbolizer)}});
    }
    if (true_result != nullptr) {
      const Agreement agreement = Compare(PlacePairs(detector), PlacePairs(*true_result));
      entry["comparison"] = {{"truth", truth},
                             {"agreed", agreement.agreed},
                             {"missed", agreement.missed},
                             {"extra", agreement.extra},
                             {"all_races", detector.race_count},
                             {"time_ns", detector.cpu_ns},
                             {"memory_bytes", detector.memory_bytes}};
      for (const Statistic& statistic : detector.statistics) {
        json& value = entry["statistics"][statistic.name];
        value = {{"value", statistic.value}};
        if (statistic.whole != 0) value["whole"] = statistic.whole;
      }
    }
    report["detectors"].push_back(std::move(entry));
  }
  return report;
}

}  // namespace trapline
