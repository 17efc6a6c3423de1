#include "replay/replay_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "symbols/linked_library.h"

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

// The first frame is the instruction itself, the others are return addresses: the call is before.
std::uint64_t LookupAddress(const std::vector<std::uint64_t>& frames, std::size_t depth) {
  return depth == 0 ? frames[depth] : frames[depth] - 1;
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

// The frames of a stack, innermost first, without those of the preload library unless there are no
// others: they are between the program and what it called.
std::vector<std::pair<const Place*, std::size_t>> ShownFrames(
    const std::vector<std::uint64_t>& stack, bool first_is_instruction, LogSymbolizer& symbolizer) {
  std::vector<std::pair<const Place*, std::size_t>> all, shown;
  for (std::size_t depth = 0; depth < stack.size(); ++depth) {
    const Place& place =
        symbolizer.Resolve(first_is_instruction ? LookupAddress(stack, depth) : stack[depth] - 1);
    const bool hidden = place.module.find("/libtrapline-preload.so") != std::string::npos;
    for (std::size_t frame = 0; frame < place.frames.size(); ++frame) {
      all.emplace_back(&place, frame);
      if (!hidden) shown.emplace_back(&place, frame);
    }
  }
  return shown.empty() ? all : shown;
}

void AppendStack(const std::vector<std::uint64_t>& stack, bool first_is_instruction,
                 LogSymbolizer& symbolizer, std::string* text) {
  int number = 0;
  for (const auto& [place, frame] : ShownFrames(stack, first_is_instruction, symbolizer))
    *text += fmt::format("    #{} {}\n", number++, FrameText(*place, frame));
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
  AppendStack(stack->second, true, symbolizer, text);
}

void AppendCreation(ThreadId thread, const ReplayResult& result, LogSymbolizer& symbolizer,
                    std::string* text) {
  const auto creation = result.creations.find(thread);
  if (creation == result.creations.end()) return;
  const auto stack = result.stacks.find(creation->second.stack);
  if (stack == result.stacks.end()) return;
  *text +=
      fmt::format("  thread {} was created by thread {} at\n", thread, creation->second.parent);
  AppendStack(stack->second, false, symbolizer, text);
}

json PlaceJson(const Place& place, const SourceFrame& frame) {
  json object = {{"address", place.address}};
  if (!place.module.empty()) {
    object["module"] = place.module;
    object["build_id"] = place.build_id;
    object["offset"] = place.offset;
  }
  if (!frame.function.empty()) object["function"] = frame.function;
  if (!frame.file.empty()) {
    object["file"] = frame.file;
    object["line"] = frame.line;
  }
  if (frame.inlined) object["inlined"] = true;
  return object;
}

json StackJson(const std::vector<std::uint64_t>& stack, bool first_is_instruction,
               LogSymbolizer& symbolizer) {
  json frames = json::array();
  for (const auto& [place, frame] : ShownFrames(stack, first_is_instruction, symbolizer))
    frames.push_back(PlaceJson(*place, place->frames[frame]));
  return frames;
}

json VariableJson(const LogVariable& variable) {
  const DataPlace& data = variable.data;
  json object = {{"symbol", data.symbol}, {"offset", data.offset}, {"module", variable.module}};
  if (data.size != 0) object["size"] = data.size;
  if (!data.expression.empty()) object["expression"] = data.expression;
  if (!data.type.empty()) object["type"] = data.type;
  if (!data.file.empty()) {
    object["file"] = data.file;
    object["line"] = data.line;
  }
  return object;
}

// How the thread of an access came to be.
json CreationJson(ThreadId thread, const ReplayResult& result, LogSymbolizer& symbolizer) {
  const auto creation = result.creations.find(thread);
  if (creation == result.creations.end()) return nullptr;
  json object = {{"parent", creation->second.parent}};
  if (const auto stack = result.stacks.find(creation->second.stack); stack != result.stacks.end())
    object["stack"] = StackJson(stack->second, false, symbolizer);
  return object;
}

json AccessJson(const Access& access, const ReplayResult& result, LogSymbolizer& symbolizer) {
  const StackTable& stacks = result.stacks;
  const Place& instruction = symbolizer.Resolve(access.ip);
  json object = {{"kind", AccessName(access.kind)},
                 {"thread", access.thread},
                 {"address", access.address},
                 {"size", access.size},
                 {"event", access.index},
                 {"place", PlaceJson(instruction, instruction.frames.front())}};
  if (const auto stack = stacks.find(access.stack); access.stack != 0 && stack != stacks.end())
    object["stack"] = StackJson(stack->second, true, symbolizer);
  if (json created = CreationJson(access.thread, result, symbolizer); !created.is_null())
    object["created"] = std::move(created);
  return object;
}

}  // namespace

void DropLinkedLibraryRaces(LogSymbolizer& symbolizer, ReplayResult* result) {
  const auto made_by_library = [&](const Access& access) {
    const auto stack = result->stacks.find(access.stack);
    return access.stack != 0 && stack != result->stacks.end() &&
           IsLinkedLibrary(stack->second, [&](std::uint64_t address) -> const Place& {
             return symbolizer.Resolve(address);
           });
  };
  for (DetectorResult& detector : result->detectors) {
    std::erase_if(detector.races, [&](const Race& race) {
      return made_by_library(race.first) || made_by_library(race.second);
    });
  }
}

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
      if (const auto variable = symbolizer.ResolveData(race.address))
        text += fmt::format("  {:#x} is {}\n", race.address, VariableText(*variable));
      const auto [low, high] = std::minmax(race.first.thread, race.second.thread);
      AppendCreation(low, result, symbolizer, &text);
      if (high != low) AppendCreation(high, result, symbolizer, &text);
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
                                {"earlier", AccessJson(race.first, result, symbolizer)},
                                {"later", AccessJson(race.second, result, symbolizer)}});
      if (const auto variable = symbolizer.ResolveData(race.address))
        entry["races"].back()["variable"] = VariableJson(*variable);
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
