#include "tools/replay_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "detector/detector.h"
#include "replay/json_text.h"
#include "replay/log_index.h"
#include "replay/replay_report.h"
#include "replay/replayer.h"
#include "replay/symbolizer.h"
#include "tools/bare_access.h"
#include "tools/command_line.h"
#include "tools/place_names.h"
#include "translator/instruction.h"

namespace trapline {
namespace {

struct Arguments {
  std::string log;
  std::vector<std::string> detectors = {"fasttrack"};
  std::string filter;
  std::string truth;
  std::string json;
  bool compare = false;
  bool no_symbols = false;
  bool partial = false;
  bool quiet = false;
  unsigned shards = 1;
  DetectorOptions options;
};

int FailReplay(const std::string& message) {
  Complain("trapline replay: {}\n", message);
  return 1;
}

void ShowProgress(std::uint64_t done, std::uint64_t all) {
  constexpr unsigned kWidth = 40;
  const double share = all == 0 ? 1 : static_cast<double>(done) / static_cast<double>(all);
  const auto filled = std::min(kWidth, static_cast<unsigned>(share * kWidth));
  Complain("\r[{:<{}}] {:3.0f}% of {} events", std::string(filled, '#'), kWidth, 100 * share, all);
}

// `names` with "all" spelt out: FastTrack first, since the first one is what others are compared
// with.
std::vector<std::string> Named(const std::vector<std::string>& names) {
  std::vector<std::string> result;
  for (const std::string& name : names) {
    if (name != "all") {
      result.push_back(name);
      continue;
    }
    const auto add = [&](std::string_view one) {
      if (std::find(result.begin(), result.end(), one) == result.end()) result.emplace_back(one);
    };
    add("fasttrack");
    for (const DetectorInfo& info : Detectors()) add(info.name);
  }
  return result;
}

// What of the log's code is a plain access that may be an atomic operation, as its files have it.
class BareAccesses {
 public:
  // `plain`: what the user said to be none. `symbolizer` must outlive this object.
  BareAccesses(LogSymbolizer& symbolizer, const std::vector<std::string>& plain)
      : symbolizer_(symbolizer), plain_("--plain", plain, use_) {}

  Meeting Judge(const Access& first, const Access& second) {
    const Judgement judgement = JudgeMeeting(first, Of(first), second, Of(second));
    if (judgement.meeting != Meeting::kRace && judgement.why == Presumption::kWaitedFor) {
      for (const Access& access : {first, second})
        known_[access.ip].waits |= !IsWrite(access.kind) && !IsAtomic(access.kind);
    }
    return judgement.meeting;
  }

 private:
  BareAccess Of(const Access& access) {
    const auto [known, is_new] = known_.try_emplace(access.ip);
    if (is_new) known->second = At(access.ip);
    return known->second.code == BareCode::kNo || IsPlainData(access.address) ? BareAccess()
                                                                              : known->second;
  }

  BareAccess At(std::uint64_t ip) {
    std::array<unsigned char, kMaximumInstructionLength> bytes{};
    if (symbolizer_.ReadCode(ip, bytes.data(), bytes.size()) == 0) return {};
    const auto instruction = Decode(bytes, ip);
    if (!instruction || !MayComeOfAtomics(*instruction)) return {};
    for (const SourceFrame& frame : symbolizer_.Resolve(ip).frames) {
      if (plain_.Match(frame.function)) return {};
    }
    return BareAccessOf(*instruction, ip, symbolizer_.BareCodeAt(ip), waiting_loops_);
  }

  bool IsPlainData(std::uint64_t address) {
    if (plain_.Cover(address, address + 1)) return true;
    if (!plain_.has_globs()) return false;
    const auto variable = symbolizer_.ResolveData(address);
    return variable && plain_.Match(variable->data.symbol);
  }

  LogSymbolizer& symbolizer_;
  WaitingLoops waiting_loops_{CodeSource{
      .read = [this](std::uint64_t address, void* out,
                     std::size_t size) { return symbolizer_.ReadCode(address, out, size); },
      .function_at =
          [this](std::uint64_t address) {
            return symbolizer_.Resolve(address).frames.back().function;
          },
      .import_at = [this](std::uint64_t slot) { return symbolizer_.ImportAt(slot); },
      .generation = [] { return 0; }}};
  PlaceUse use_;
  PlaceNames plain_;
  std::unordered_map<std::uint64_t, BareAccess> known_;  // by instruction
};

int Run(const Arguments& arguments) {
  if (IsSameFile(arguments.log, arguments.json))
    return FailReplay(fmt::format("cannot write the report to {}: it is the log", arguments.json));
  LogIndex index;
  if (Status status = index.Open(arguments.log); !status.ok()) return FailReplay(status.message());
  if (!index.missing().empty()) {
    if (index.damaged() && !arguments.partial) {
      return FailReplay(fmt::format("{} is damaged: {}; --partial replays what comes before",
                                    arguments.log, index.missing()));
    }
    const bool any = index.complete_up_to() != 0;
    if (!any && !arguments.partial)
      return FailReplay(
          fmt::format("nothing of {} can be replayed: {}", arguments.log, index.missing()));
    Complain("trapline replay: {} is not complete: {}; {} replayed\n", arguments.log,
             index.missing(),
             any ? "what comes before the first missing event is" : "nothing can be");
  }
  if (!index.metadata().parts.empty()) {
    fmt::print(
        stderr,
        "trapline replay: {} is a piece of a recording; what happened outside it is unknown\n",
        arguments.log);
  }
  ReplayOptions options;
  options.detectors = Named(arguments.detectors);
  options.filter = arguments.filter;
  options.shards = arguments.shards;
  options.detector_options = arguments.options;
  std::string truth;
  if (arguments.compare) {
    truth = arguments.truth.empty() ? options.detectors.front() : arguments.truth;
    if (std::find(options.detectors.begin(), options.detectors.end(), truth) ==
        options.detectors.end()) {
      options.detectors.insert(options.detectors.begin(), truth);
    }
    if (!arguments.filter.empty()) truth = arguments.filter + "+" + truth;
  }
  const bool progress = isatty(STDERR_FILENO) != 0 && !arguments.quiet;
  if (progress) {
    options.progress = [&index](std::uint64_t done) { ShowProgress(done, index.events()); };
  }
  LogSymbolizer symbolizer(index.metadata().modules, !arguments.no_symbols);
  BareAccesses bare_accesses(symbolizer, index.metadata().plain);
  options.ordering_rule = [&bare_accesses](const Access& first, const Access& second) {
    return bare_accesses.Judge(first, second);
  };
  ReplayResult result;
  const Status status = Replay(index, options, &result);
  if (progress) Complain("\r{:<70}\r", "");
  if (!status.ok()) return FailReplay(status.message());
  DropLinkedLibraryRaces(symbolizer, &result);
  fmt::print("{}", RaceReport(index, result, symbolizer));
  if (arguments.compare) fmt::print("\n{}", ComparisonReport(result, truth));
  if (!arguments.json.empty()) {
    std::ofstream file(arguments.json);
    file << JsonText(JsonReport(index, result, truth, symbolizer), 2) << '\n';
    file.close();
    if (!file) {
      return FailReplay(
          fmt::format("cannot write {}; is there room, and may you write there?", arguments.json));
    }
  }
  return 0;
}

CLI::Validator IsNotNegative() {
  return {[](const std::string& text) {
            return text.starts_with('-') ? text + " is negative" : std::string();
          },
          ""};
}

CLI::Validator IsDetector(bool or_all) {
  return CLI::Validator(
      [or_all](std::string& name) -> std::string {
        if ((or_all && name == "all") || MakeDetector(name, {}) != nullptr) return {};
        return fmt::format("there is no detector '{}'; choose from {}", name, DetectorNames());
      },
      "");
}

}  // namespace

void AddReplayCommand(CLI::App& app, int& exit_status) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("replay", "Run race detectors over a trap log");
  command->add_option("LOG", arguments->log, "the trap log")->required();
  command
      ->add_option("--detector,-d", arguments->detectors,
                   "detectors, separated by commas: " + DetectorNames() + "; or all of them: all")
      ->delimiter(',')
      ->check(IsDetector(true))
      ->capture_default_str();
  command->add_option("--filter", arguments->filter, "filter in front of every detector")
      ->check(CLI::IsMember({"tree", "tree-spans", "tree-exact"}));
  CLI::Option* const compare =
      command->add_flag("--compare", arguments->compare, "compare the detectors in a table");
  command
      ->add_option("--truth", arguments->truth,
                   "detector that the others are compared with (default: the first)")
      ->check(IsDetector(false))
      ->needs(compare);
  command
      ->add_option("--shards", arguments->shards,
                   "split memory over this many threads; the report stays the same")
      ->check(CLI::Range(1, 256));
  command->add_option("--json", arguments->json, "also write the report as JSON to this file");
  command
      ->add_option("--sampling-rate", arguments->options.sampling_rate,
                   "share of time that sampling detectors look at")
      ->check(CLI::Range(0.0, 1.0))
      ->check(IsNumber());
  command->add_option("--seed", arguments->options.seed, "seed of sampling detectors")
      ->check(IsNotNegative());
  command->add_flag("--all-races", arguments->options.all_races,
                    "report every race, not one for each pair of places");
  command->add_flag("--no-symbols", arguments->no_symbols,
                    "name places by module and offset only: the same text on every machine");
  command->add_flag(
      "--partial", arguments->partial,
      "replay a damaged log, too, up to the damage; one that was merely cut off is replayed "
      "without this");
  command->add_flag("--quiet,-q", arguments->quiet, "no progress bar");
  command->callback([arguments, &exit_status] { exit_status = Run(*arguments); });
}

}  // namespace trapline
