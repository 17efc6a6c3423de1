#include "tools/race_detection.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "hypervisor/error_output.h"
#include "hypervisor/kvm.h"
#include "symbols/linked_library.h"

namespace trapline {
namespace {

Suppressions ReadSuppressions(const std::string& path) {
  Suppressions suppressions;
  if (path.empty()) return suppressions;
  if (const Status status = suppressions.ReadFile(path); !status.ok())
    throw std::invalid_argument(status.message());
  return suppressions;
}

const char* LockKind(std::uint64_t kind, bool shared) {
  switch (kind) {
    case TRAPLINE_LOCK_MUTEX:
      return "mutex";
    case TRAPLINE_LOCK_RWLOCK:
      return shared ? "rwlock (shared)" : "rwlock";
    case TRAPLINE_LOCK_SPINLOCK:
      return "spinlock";
    default:
      return shared ? "lock (shared)" : "lock";
  }
}

}  // namespace

void to_json(nlohmann::json& json, const RaceDetectionOptions& options) {
  json = {{"detector", options.detector},         {"json", options.json_path},
          {"json_fd", options.json_descriptor},   {"shared_fd", options.shared_descriptor},
          {"suppressions", options.suppressions}, {"exit", options.error_exit_code},
          {"verbose", options.verbose},           {"program", options.program}};
}

void from_json(const nlohmann::json& json, RaceDetectionOptions& options) {
  options.detector = json.value("detector", options.detector);
  options.json_path = json.value("json", "");
  options.json_descriptor = json.value("json_fd", -1);
  options.shared_descriptor = json.value("shared_fd", -1);
  options.suppressions = json.value("suppressions", "");
  options.error_exit_code = json.value("exit", -1);
  options.verbose = json.value("verbose", false);
  options.program = json.value("program", "");
}

RaceDetection::RaceDetection(const RaceDetectionOptions& options, ExecutionEvents& events)
    : options_(options),
      events_(events),
      reports_(events.symbolizer(), ReadSuppressions(options.suppressions),
               [&] {
                 RaceReportOptions report;
                 report.program = options.program;
                 return report;
               }()),
      process_(getpid()) {
  MakeDetector();
  shared_memory_.Open(options_.shared_descriptor);
}

void RaceDetection::MakeDetector() {
  // Below this there is little to gain.
  detector_ = trapline::MakeDetector(options_.detector, {.condense_from = 1 << 20});
  if (!detector_)
    throw std::invalid_argument(fmt::format("there is no detector '{}'", options_.detector));
  detector_->SetOrderingRule(
      [this](const Access& first, const Access& second) { return events_.Judge(first, second); });
  races_seen_ = 0;
}

Status RaceDetection::OpenJson(bool first_process) {
  if (options_.json_path.empty()) return {};
  int open = options_.json_descriptor;
  RaceJsonFile created;
  if (first_process) {
    if (Status status = created.Create(options_.json_path, options_.program); !status.ok())
      return status;
    open = created.descriptor();
  }
  json_.Adopt(OpenOutOfTheWay([open] { return dup(open); }).Release(), options_.json_path);
  if (!first_process) close(open);
  return {};
}

// --- the stream

void RaceDetection::OnEvents(std::span<const Event> events) {
  detector_->OnEvents(events, index_);
  index_ += events.size();
}

void RaceDetection::Report() {
  const auto races = detector_->races();
  for (; races_seen_ < races.size(); ++races_seen_) Report(races[races_seen_]);
}

void RaceDetection::OnForkedChild() {
  process_ = getpid();
  reports_.Clear();
  shared_uses_.clear();
  MakeDetector();
  index_ = 0;
}

void RaceDetection::OnExecute(nlohmann::json& options, std::vector<int>& descriptors) {
  RaceDetectionOptions handed_on = options_;
  handed_on.json_descriptor = json_.descriptor();
  if (handed_on.json_descriptor >= 0) descriptors.push_back(handed_on.json_descriptor);
  handed_on.shared_descriptor = shared_memory_.descriptor();
  if (handed_on.shared_descriptor >= 0) descriptors.push_back(handed_on.shared_descriptor);
  options[kOptionsName] = handed_on;
}

void RaceDetection::OnSharedMemoryEnds(std::uint64_t start, std::uint64_t end) {
  const auto use = shared_memory_.Note(start, end, process_);
  if (!use) return;
  WriteError(
      fmt::format("trapline: {} ({} bytes) is shared by processes {} and {}: what one of them did "
                  "there was not "
                  "compared with what the other did\n",
                  use->memory, use->size, use->first, use->second));
  shared_uses_.push_back(*use);
  WriteJson();
}

// --- reports

ReportThread RaceDetection::Describe(ThreadId thread) {
  const auto known = events_.threads().find(thread);
  if (known == events_.threads().end()) return {thread, 0, "", 0, {}};
  const ThreadState& state = known->second;
  return {thread, static_cast<int>(state.tid), state.name, state.parent, state.creation_stack};
}

ReportAccess RaceDetection::Describe(const Access& access) {
  ReportAccess described;
  described.thread = Describe(access.thread);
  described.operation = trapline::IsAtomic(access.kind) ? AccessOperation::kAtomic
                        : IsWrite(access.kind)          ? AccessOperation::kWrite
                                                        : AccessOperation::kRead;
  described.size = access.size;
  described.address = access.address;
  described.place = access.ip;
  const AccessContext context = events_.contexts()[access.stack];
  described.stack = events_.contexts().stack(context.stack);
  described.generation = context.generation;
  for (const HeldLock& lock : events_.contexts().lock_set(context.lock_set)) {
    ReportLock report;
    report.address = lock.address;
    report.kind = LockKind(lock.kind, lock.shared);
    if (lock.ip != 0) report.acquisition_stack = {lock.ip};
    described.locks.push_back(std::move(report));
  }
  if (described.stack.empty() && access.ip != 0) described.stack = {access.ip};
  return described;
}

StackLocation RaceDetection::LocateOnStack(ThreadId owner, const Race& race) {
  const bool is_newest = race.second.thread == owner;
  return {Describe(owner), events_.FramesOf(owner, is_newest ? &race.second : nullptr)};
}

ReportLocation RaceDetection::Locate(const Race& race) {
  const std::uint64_t address = race.address, size = race.size;
  if (address >= kDescriptorAddresses)
    return MappingLocation{fmt::format("file descriptor {}", (address - kDescriptorAddresses) / 8),
                           0};
  for (const auto& [number, state] : events_.threads()) {
    // The block of thread-local variables lies right below the thread pointer, the stack below.
    constexpr std::uint64_t kLargestBlock = 1 << 20;
    if (address < state.thread_pointer && state.thread_pointer - address < kLargestBlock &&
        events_.symbolizer().ResolveThreadLocal(address, state.thread_pointer,
                                                events_.modules().memory())) {
      return ThreadLocalLocation{Describe(number), state.thread_pointer};
    }
    if (address >= state.stack_start && address < state.stack_end)
      return LocateOnStack(number, race);
  }
  if (const auto block = events_.blocks().Find(address, size)) {
    HeapLocation heap;
    heap.start = block->start;
    heap.size = block->size;
    if (block->ip != 0) heap.allocation_stack = {block->ip};
    heap.allocated_by = Describe(block->thread);
    heap.freed = block->freed;
    if (block->freed) {
      if (block->free_ip != 0) heap.free_stack = {block->free_ip};
      heap.freed_by = Describe(block->freed_by);
    }
    return heap;
  }
  if (events_.modules().Find(address) != nullptr) return GlobalLocation{};
  if (const auto mapping = events_.modules().FindMapping(address)) {
    if (mapping->path == "[stack]") return LocateOnStack(0, race);
    return MappingLocation{mapping->path, address - mapping->begin + mapping->offset};
  }
  return UnknownLocation{};
}

bool RaceDetection::IsLinkedLibrary(const ReportAccess& access) {
  return trapline::IsLinkedLibrary(access.stack, [&](std::uint64_t pc) {
    return events_.symbolizer().ResolveCode(pc, access.generation);
  });
}

void RaceDetection::Report(const Race& race) {
  RaceReport report;
  report.accesses = {Describe(race.first), Describe(race.second)};
  // Memory that was moved in between: the earlier access is told by where its bytes are now.
  for (ReportAccess& access : report.accesses) {
    if (race.address >= access.address + access.size || access.address >= race.address + race.size)
      access.address = race.address;
  }
  if (IsLinkedLibrary(report.accesses[0]) || IsLinkedLibrary(report.accesses[1])) return;
  report.location = Locate(race);
  report.process = process_;
  if (const auto text = reports_.Add(report)) {
    WriteError(*text);
    AppendJson();
    events_.symbolizer().ReleaseLibraries();
  }
}

void RaceDetection::AppendJson() {
  if (json_.descriptor() < 0) return;
  // If it cannot be added to what is there, the next one brings it along.
  if (json_complete_) json_complete_ = json_.Append(reports_.NewestToJson()).ok();
  if (!json_complete_) WriteJson();
}

void RaceDetection::WriteJson() {
  if (json_.descriptor() < 0) return;
  nlohmann::json own = reports_.ToJson();
  for (const SharedMemoryUse& use : shared_uses_) {
    own["shared_memory"].push_back(
        {{"memory", use.memory}, {"size", use.size}, {"processes", {use.first, use.second}}});
  }
  const Status status = json_.Merge(own);
  json_complete_ = status.ok();
  if (!status.ok()) WriteError(fmt::format("trapline: {}\n", status.message()));
}

int RaceDetection::OnExit(int status) {
  detector_->Finish();
  const auto races = detector_->races();
  for (; races_seen_ < races.size(); ++races_seen_) Report(races[races_seen_]);
  WriteError(reports_.Summary(options_.verbose));
  WriteJson();
  return options_.error_exit_code >= 0 && reports_.races() > 0 ? options_.error_exit_code : status;
}

}  // namespace trapline
