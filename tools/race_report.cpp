#include "tools/race_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "tools/race_render.h"

namespace trapline {
namespace {

using nlohmann::json;

// A place in the code, the same wherever its module is loaded: module number (or kNoModule) and
// offset.
constexpr std::uint32_t kNoModule = ~0u;
using Place = std::pair<std::uint32_t, std::uint64_t>;
using PlacePair = std::pair<Place, Place>;  // in order

PlacePair Unordered(const Place& a, const Place& b) {
  return a < b ? PlacePair(a, b) : PlacePair(b, a);
}

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

// Tells the runs of this program's code in one process apart: before and after an execve.
std::string Instance() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return fmt::format("{}.{:09}", now.tv_sec, now.tv_nsec);
}

}  // namespace

std::string_view RaceKind(const RaceReport& report) {
  const AccessOperation a = report.accesses[0].operation, b = report.accesses[1].operation;
  if (a == AccessOperation::kAtomic || b == AccessOperation::kAtomic) return "atomic-plain";
  return a == b ? "write-write" : "read-write";
}

class RaceReports::Implementation {
 public:
  Implementation(Symbolizer& symbolizer, Suppressions suppressions, RaceReportOptions options)
      : symbolizer_(symbolizer),
        suppressions_(std::move(suppressions)),
        options_(std::move(options)),
        instance_(Instance()) {}

  std::optional<std::string> Add(const RaceReport& report) {
    const std::unique_lock lock(mutex_);
    std::array<Place, 2> places;
    bool at_first_pcs = true;
    for (int i = 0; i < 2; ++i) {
      std::size_t depth = 0;
      places[i] = TrackedPlace(report.accesses[i], depth);
      at_first_pcs = at_first_pcs && depth == 0;
    }
    const auto [at, is_new] = numbers_.try_emplace(Unordered(places[0], places[1]), found_.size());
    if (at_first_pcs) {
      const std::uint64_t a = FirstPc(report.accesses[0]), b = FirstPc(report.accesses[1]);
      by_pc_[std::minmax(a, b)] = at->second;
    }
    if (!is_new) {
      found_[at->second].occurrences += report.occurrences;
      return std::nullopt;
    }
    const ResolvedRace race = Resolve(report);
    Found found;
    found.suppressed = IsSuppressed(race);
    found.occurrences = report.occurrences;
    if (!found.suppressed) found.race = RaceJson(race);
    found_.push_back(std::move(found));
    if (found_.back().suppressed) return std::nullopt;
    return RaceText(race);
  }

  bool AddOccurrence(std::uint64_t earlier, std::uint64_t later) {
    const std::unique_lock lock(mutex_);
    const auto known = by_pc_.find(std::minmax(earlier, later));
    if (known == by_pc_.end()) return false;
    ++found_[known->second].occurrences;
    return true;
  }

  std::size_t races() const {
    const std::unique_lock lock(mutex_);
    return Count().races;
  }

  std::string Summary(bool verbose) const {
    const std::unique_lock lock(mutex_);
    const Counts counts = Count();
    if (counts.races == 0 && !verbose) return {};
    const auto plural = [](std::uint64_t count, const char* word) {
      return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
    };
    std::string text = "trapline: no races";
    if (counts.races != 0) {
      text = fmt::format("trapline: {} ({})", plural(counts.races, "race"),
                         plural(counts.occurrences, "occurrence"));
    }
    if (counts.suppressed != 0) text += fmt::format(", {} suppressed", counts.suppressed);
    return text + '\n';
  }

  json ToJson() const {
    const std::unique_lock lock(mutex_);
    json part = WithoutRaces();
    for (const Found& found : found_) {
      if (!found.suppressed) part["races"].push_back(Entry(found));
    }
    return part;
  }

  json NewestToJson() const {
    const std::unique_lock lock(mutex_);
    json part = WithoutRaces();
    const auto newest = std::find_if(found_.rbegin(), found_.rend(),
                                     [](const Found& found) { return !found.suppressed; });
    if (newest != found_.rend()) part["races"].push_back(Entry(*newest));
    return part;
  }

  void Clear() {
    const std::unique_lock lock(mutex_);
    numbers_.clear();
    by_pc_.clear();
    found_.clear();
    instance_ = Instance();
  }

 private:
  struct Found {
    json race;  // without occurrences; null if suppressed
    bool suppressed = false;
    std::uint64_t occurrences = 0;
  };
  struct Counts {
    std::size_t races = 0, suppressed = 0;
    std::uint64_t occurrences = 0;
  };

  json Entry(const Found& found) const {
    json race = found.race;
    race["occurrences"] = found.occurrences;
    race["instance"] = instance_;
    return race;
  }

  json WithoutRaces() const {
    const Counts counts = Count();
    return {{"process",
             {{"process", getpid()},
              {"instance", instance_},
              {"program", options_.program},
              {"races", counts.races},
              {"occurrences", counts.occurrences},
              {"suppressed", counts.suppressed}}},
            {"races", json::array()}};
  }

  // The first pc is the instruction itself, the others are return addresses.
  static std::uint64_t LookupPc(const std::vector<std::uint64_t>& stack, std::size_t depth,
                                bool first_is_instruction) {
    return stack[depth] - (depth == 0 && first_is_instruction ? 0 : 1);
  }

  static std::uint64_t FirstPc(const ReportAccess& access) {
    return access.stack.empty() ? 0 : access.stack[0];
  }

  CodePlace ResolveCode(std::uint64_t pc, std::uint32_t generation) const {
    return generation == 0 ? symbolizer_.ResolveCode(pc) : symbolizer_.ResolveCode(pc, generation);
  }

  bool IsHidden(const Module* module) const {
    return module != nullptr &&
           std::any_of(options_.hidden_modules.begin(), options_.hidden_modules.end(),
                       [&](const std::string& glob) { return GlobMatches(glob, module->name()); });
  }

  // What trapline/client.h needs for itself, inlined into what the program called.
  static bool IsClientHeaders(const SourceFrame& source) {
    return source.function.starts_with("trapline_client_");
  }

  static Place PlaceOf(std::uint64_t pc, const Module* module) {
    return module != nullptr ? Place(module->index, pc - module->bias) : Place(kNoModule, pc);
  }

  // Where the program made the access: the innermost frame that is not hidden. Without a stack, the
  // address has to tell races apart.
  Place TrackedPlace(const ReportAccess& access, std::size_t& depth) const {
    if (access.place != 0) {
      depth = access.place == FirstPc(access) ? 0 : 1;
      return PlaceOf(access.place, symbolizer_.FindModule(access.place, access.generation));
    }
    for (depth = 0; depth < access.stack.size(); ++depth) {
      const std::uint64_t pc = LookupPc(access.stack, depth, true);
      const Module* module = symbolizer_.FindModule(pc, access.generation);
      if (IsHidden(module)) continue;
      return PlaceOf(pc, module);
    }
    depth = 0;
    return {kNoModule, access.stack.empty() ? access.address : access.stack[0]};
  }

  ResolvedStack ResolveStack(const std::vector<std::uint64_t>& stack, std::uint32_t generation,
                             bool first_is_instruction) const {
    ResolvedStack all, shown;
    for (std::size_t depth = 0; depth < stack.size(); ++depth) {
      CodePlace place = ResolveCode(LookupPc(stack, depth, first_is_instruction), generation);
      for (SourceFrame& source : place.frames) {
        ResolvedFrame frame;
        frame.source = std::move(source);
        if (place.module != nullptr) frame.module = place.module->path;
        frame.offset = place.offset;
        frame.address = stack[depth];
        if (!IsHidden(place.module) && !IsClientHeaders(frame.source)) shown.push_back(frame);
        all.push_back(std::move(frame));
      }
    }
    return shown.empty() ? all : shown;
  }

  ResolvedThread ResolveThread(const ReportThread& thread) const {
    return {thread, ResolveStack(thread.creation_stack, 0, false)};
  }

  std::optional<ResolvedThread> ResolveThread(const std::optional<ReportThread>& thread) const {
    return thread ? std::optional(ResolveThread(*thread)) : std::nullopt;
  }

  void ResolveGlobal(ResolvedLocation& location) const {
    if (const auto data = symbolizer_.ResolveData(location.address)) {
      location.kind = "global";
      TakeVariable(*data, location);
    } else if (const Module* module = symbolizer_.FindModule(location.address, 0)) {
      location.kind = "global";
      location.module = module->path;
      location.offset = location.address - module->bias;
    }
  }

  static void TakeVariable(const DataPlace& data, ResolvedLocation& location) {
    location.symbol = data.symbol;
    location.expression = data.expression;
    location.type = data.type;
    location.file = data.file;
    location.line = data.line;
    location.offset = data.offset;
    location.size = data.size;
    if (data.module != nullptr) location.module = data.module->path;
  }

  ResolvedLocation ResolveLocation(const RaceReport& report) const {
    ResolvedLocation location;
    location.kind = "unknown";
    // The first byte that both touch.
    location.address = std::max(report.accesses[0].address, report.accesses[1].address);
    std::visit(Overloaded{[&](const UnknownLocation&) { ResolveGlobal(location); },
                          [&](const GlobalLocation&) {
                            ResolveGlobal(location);
                            location.kind = "global";
                          },
                          [&](const HeapLocation& heap) {
                            location.kind = "heap";
                            location.start = heap.start;
                            location.size = heap.size;
                            location.offset = location.address - heap.start;
                            location.allocation = ResolveStack(heap.allocation_stack, 0, false);
                            location.allocated_by = ResolveThread(heap.allocated_by);
                            location.freed = heap.freed;
                            location.release = ResolveStack(heap.free_stack, 0, false);
                            location.freed_by = ResolveThread(heap.freed_by);
                          },
                          [&](const StackLocation& stack) {
                            location.kind = "stack";
                            location.owner = ResolveThread(stack.thread);
                            const auto variable =
                                symbolizer_.ResolveStack(location.address, stack.frames);
                            if (!variable) return;
                            location.symbol = variable->name;
                            location.expression = variable->expression;
                            location.type = variable->type;
                            location.function = variable->function;
                            location.file = variable->file;
                            location.line = variable->line;
                            location.offset = variable->offset;
                          },
                          [&](const ThreadLocalLocation& local) {
                            location.kind = "tls";
                            location.owner = ResolveThread(local.thread);
                            if (local.thread_pointer == 0) return;
                            const auto data = symbolizer_.ResolveThreadLocal(
                                location.address, local.thread_pointer, options_.memory);
                            if (data) TakeVariable(*data, location);
                          },
                          [&](const MappingLocation& mapping) {
                            location.kind = "mapping";
                            location.path = mapping.path;
                            location.offset = mapping.offset;
                          }},
               report.location);
    return location;
  }

  ResolvedRace Resolve(const RaceReport& report) const {
    ResolvedRace race;
    race.kind = RaceKind(report);
    race.process = report.process;
    race.location = ResolveLocation(report);
    for (int i = 0; i < 2; ++i) {
      const ReportAccess& access = report.accesses[i];
      ResolvedAccess& resolved = race.accesses[i];
      resolved.access = access;
      resolved.thread = ResolveThread(access.thread);
      resolved.stack = ResolveStack(access.stack, access.generation, true);
      for (const ReportLock& held : access.locks)
        resolved.locks.push_back({held, ResolveStack(held.acquisition_stack, 0, false)});
    }
    return race;
  }

  bool IsSuppressed(const ResolvedRace& race) const {
    const auto matches = [&](const ResolvedFrame& frame) {
      return suppressions_.Matches(frame.source.function, frame.source.file, frame.module);
    };
    for (const ResolvedAccess& access : race.accesses) {
      if (std::any_of(access.stack.begin(), access.stack.end(), matches)) return true;
    }
    return suppressions_.Matches(race.location.symbol, {}, {});
  }

  Counts Count() const {
    Counts counts;
    for (const Found& found : found_) {
      ++(found.suppressed ? counts.suppressed : counts.races);
      if (!found.suppressed) counts.occurrences += found.occurrences;
    }
    return counts;
  }

  Symbolizer& symbolizer_;
  const Suppressions suppressions_;
  const RaceReportOptions options_;
  std::string instance_;
  mutable std::mutex mutex_;
  std::map<PlacePair, std::size_t> numbers_;  // index in found_
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> by_pc_;
  std::vector<Found> found_;
};

RaceReports::RaceReports(Symbolizer& symbolizer, Suppressions suppressions,
                         RaceReportOptions options)
    : implementation_(std::make_unique<Implementation>(symbolizer, std::move(suppressions),
                                                       std::move(options))) {}

RaceReports::~RaceReports() = default;

std::optional<std::string> RaceReports::Add(const RaceReport& report) {
  return implementation_->Add(report);
}

bool RaceReports::AddOccurrence(std::uint64_t earlier, std::uint64_t later) {
  return implementation_->AddOccurrence(earlier, later);
}

std::size_t RaceReports::races() const { return implementation_->races(); }

std::string RaceReports::Summary(bool verbose) const { return implementation_->Summary(verbose); }

json RaceReports::ToJson() const { return implementation_->ToJson(); }

json RaceReports::NewestToJson() const { return implementation_->NewestToJson(); }

void RaceReports::Clear() { implementation_->Clear(); }

}  // namespace trapline
