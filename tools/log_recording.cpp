#include "tools/log_recording.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "hypervisor/error_output.h"
#include "hypervisor/kvm.h"
#include "hypervisor/link_target.h"

namespace trapline {
namespace {

// Bound on the memory of events that wait to be written. At what a trap costs today, some 10^5
// accesses a second, it holds a minute's.
constexpr std::uint64_t kSegmentBytes = 16 << 20;

void Complain(const Status& status) { WriteError(fmt::format("trapline: {}\n", status.message())); }

}  // namespace

void to_json(nlohmann::json& json, const LogRecordingOptions& options) {
  json = {{"path", options.path},       {"filter", options.filter}, {"owner", options.owner},
          {"initial", options.initial}, {"logs", options.logs},     {"control", options.control}};
}

void from_json(const nlohmann::json& json, LogRecordingOptions& options) {
  options.path = json.value("path", "");
  options.filter = json.value("filter", LogFilter::kAll);
  options.owner = json.value("owner", 0);
  options.initial = json.value("initial", true);
  options.logs = json.value("logs", 0U);
  options.control = json.value("control", -1);
}

LogRecording::LogRecording(LogRecordingOptions options, ExecutionEvents& events,
                           LogMetadata metadata)
    : options_(std::move(options)),
      events_(events),
      metadata_(std::move(metadata)),
      first_accesses_(options_.filter == LogFilter::kFirst) {
  if (options_.owner == 0) options_.owner = getpid();
  if (options_.owner != getpid()) {
    // Started by a vfork child: a process of its own.
    options_.owner = getpid();
    options_.initial = false;
    options_.logs = 0;
  }
}

std::string LogRecording::Path() const {
  if (options_.initial && options_.logs == 0) return options_.path;
  const unsigned number = options_.logs + (options_.initial ? 0 : 1);
  const std::string path = fmt::format("{}.{}", options_.path, getpid());
  return number == 1 ? path : fmt::format("{}.{}", path, number);
}

Status LogRecording::Open() {
  if (options_.control >= 0) {
    if (const Status status = LogRecorder::Await(options_.control); !status.ok()) Complain(status);
    options_.control = -1;
  }
  return options_.initial && options_.logs == 0 ? Start() : Status();
}

void LogRecording::SetHostKind(const std::string& kind) {
  metadata_.host_kind = kind;
  LogMetadata late;
  late.host_kind = kind;
  if (recorder_ != nullptr) static_cast<void>(recorder_->segment().AddMetadata(late.ToJson()));
}

Status LogRecording::Start() {
  const DescriptorRoom room;
  recorder_ = std::make_unique<LogRecorder>();
  RecorderOptions options;
  options.segment.memory_bytes = kSegmentBytes;
  options.drain_command = {OwnExecutable() + "-replay", "log", "drain", "--attended"};
  options.move_descriptor = &MoveOutOfTheWay;
  Status status = recorder_->Start(Path(), metadata_, options);
  if (!status.ok()) recorder_.reset();
  return status;
}

// The second thread is about to start: from now on, `thread`'s events and those of all others.
void LogRecording::Begin(ThreadId thread) {
  state_ = State::kOff;
  if (recorder_ == nullptr) {
    if (const Status status = Start(); !status.ok()) {
      Complain(
          Status::Error(fmt::format("process {} is not recorded: {}", getpid(), status.message())));
      return;
    }
  }
  state_ = State::kRecording;
  DescribeModules();
  const auto known = events_.threads().find(thread);
  if (known == events_.threads().end()) return;
  for (const HeldLock& lock : known->second.locks) {
    Event held{};
    held.kind = lock.shared ? EventKind::kAcquireShared : EventKind::kAcquire;
    held.thread = thread;
    held.address = lock.address;
    held.ip = lock.ip;
    Append(held);
  }
}

void LogRecording::OnEvents(std::span<const Event> events) {
  for (std::size_t i = 0; i < events.size();) {
    if (state_ == State::kRecording) i += AppendAccesses(events.subspan(i));
    if (i < events.size()) OnEvent(events[i++]);
  }
}

void LogRecording::OnEvent(const Event& event) {
  if (state_ == State::kWaiting && event.kind == EventKind::kFork) Begin(event.thread);
  if (state_ != State::kRecording) return;
  if (first_accesses_ && !filter_.Passes(event)) return;
  Append(event);
}

// Nearly all events are accesses of the thread before, from places that are known.
std::size_t LogRecording::AppendAccesses(std::span<const Event> events) {
  constexpr std::size_t kMost = 64;  // records need 4 KiB
  std::array<const Event*, kMost> batch;
  std::array<std::uint32_t, kMost> stacks;
  const ThreadId thread = events.front().thread;
  std::uint32_t count = 0;
  std::size_t taken = 0;
  for (const Event& event : events.first(std::min(events.size(), kMost))) {
    if (event.thread != thread || !IsAccess(event.kind) || (event.flags & kOnlyOrders) != 0 ||
        event.stack >= context_stacks_.size() || context_stacks_[event.stack] == kUnknownStack) {
      break;
    }
    ++taken;
    if (first_accesses_ && !filter_.Passes(event)) continue;
    batch[count] = &event;
    stacks[count++] = context_stacks_[event.stack];
  }
  if (count == 0) return taken;
  if (ThreadLog* const log = Room(thread, count * kMaxEventRecordBytes, count); log != nullptr)
    log->AppendOrdered(batch.data(), stacks.data(), count);
  return taken;
}

void LogRecording::Append(const Event& event) {
  if ((event.flags & kOnlyOrders) != 0) {
    // The log says that with the scopes it has.
    Event scope{};
    scope.kind = EventKind::kUntrackThread;
    scope.thread = event.thread;
    scope.aux = 1;
    Append(scope);
    Event order = event;
    order.flags = 0;
    Append(order);
    scope.kind = EventKind::kTrackThread;
    Append(scope);
    return;
  }
  Event recorded = event;
  recorded.stack = StackOf(event);
  ThreadLog* const log = Room(event.thread, kMaxEventRecordBytes, 1);
  if (log == nullptr) return;
  log->AppendOrdered(recorded);
  if (event.kind != EventKind::kThreadEnd) return;
  log->Finish();
  ended_[event.thread] = log->position();
  logs_.erase(event.thread);
  last_log_ = nullptr;
}

ThreadLog* LogRecording::Room(ThreadId thread, std::uint32_t bytes, std::uint32_t events) {
  if (last_log_ != nullptr && last_thread_ == thread && last_log_->Reserve(bytes)) return last_log_;
  std::unique_ptr<ThreadLog>& log = logs_[thread];
  if (log == nullptr) {
    log = std::make_unique<ThreadLog>();
    // Memory can be unmapped on behalf of a thread that has ended.
    const auto before = ended_.find(thread);
    log->Open(recorder_->segment().view(), thread,
              before != ended_.end() ? before->second : ThreadLog::Position());
  }
  last_log_ = log.get();
  last_thread_ = thread;
  if (log->Reserve(bytes)) return log.get();
  // There may be more threads than chunks: let the drain have those of the others.
  for (const auto& [other, stream] : logs_) stream->Finish();
  return recorder_->MakeRoom(*log, bytes, events) ? log.get() : nullptr;
}

std::uint32_t LogRecording::StackOf(const Event& event) {
  const std::uint32_t number = events_.contexts()[event.stack].stack;
  if (number >= stacks_.size())
    stacks_.resize(std::max<std::size_t>(2 * stacks_.size(), number + 1), kUnknownStack);
  if (event.stack >= context_stacks_.size()) {
    context_stacks_.resize(std::max<std::size_t>(2 * context_stacks_.size(), event.stack + 1),
                           kUnknownStack);
  }
  std::uint32_t& known = stacks_[number];
  if (known == kUnknownStack && number == 0) known = 0;
  if (known == kUnknownStack) {
    DescribeModules();
    ThreadLog* const log = Room(event.thread, kMaxStackRecordBytes, 1);
    if (log == nullptr) return 0;
    const std::vector<std::uint64_t> frames = events_.contexts().stack(number);
    known = log->AppendStack(frames.data(), static_cast<std::uint32_t>(frames.size()));
  }
  return context_stacks_[event.stack] = known;
}

void LogRecording::DescribeModules() {
  Modules& modules = events_.modules();
  const std::uint32_t generation = modules.generation();
  if (generation == generation_) return;
  generation_ = generation;
  LogMetadata late;
  for (const Module* module : modules.Loaded()) {
    if (described_.size() <= module->index) described_.resize(module->index + 1);
    if (described_[module->index]) continue;
    described_[module->index] = true;
    late.modules.push_back(
        {module->path, module->build_id, module->begin, module->end, module->bias});
  }
  if (late.modules.empty()) return;
  // No room: their addresses stay numbers.
  static_cast<void>(recorder_->segment().AddMetadata(late.ToJson()));
}

void LogRecording::OnForkedChild() {
  if (recorder_ != nullptr) recorder_->Abandon();
  recorder_.reset();
  logs_.clear();
  last_log_ = nullptr;
  ended_.clear();
  stacks_.clear();
  context_stacks_.clear();
  filter_.Clear();
  described_.clear();
  generation_ = 0;
  state_ = State::kWaiting;
  options_.owner = getpid();
  options_.initial = false;
  options_.logs = 0;
}

void LogRecording::OnExecute(nlohmann::json& options, std::vector<int>& descriptors) {
  LogRecordingOptions handed_on = options_;
  if (recorder_ != nullptr && getpid() == options_.owner) {
    handed_on.control = recorder_->control();
    descriptors.push_back(handed_on.control);
    if (state_ == State::kRecording) recorder_->SetExecuting(true);
  }
  if (state_ == State::kRecording) ++handed_on.logs;
  options[kOptionsName] = handed_on;
}

void LogRecording::OnExecuteFailed() {
  if (recorder_ != nullptr && getpid() == options_.owner && state_ == State::kRecording)
    recorder_->SetExecuting(false);
}

int LogRecording::OnExit(int status) {
  if (recorder_ == nullptr) return status;
  if (state_ == State::kRecording) {
    events_.modules().Refresh();
    DescribeModules();
  }
  for (const auto& [thread, log] : logs_) log->Finish();
  if (const Status stopped = recorder_->Stop(); !stopped.ok()) Complain(stopped);
  state_ = State::kOff;
  return status;
}

}  // namespace trapline
