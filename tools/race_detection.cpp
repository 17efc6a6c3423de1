#include "tools/race_detection.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "hypervisor/kvm.h"

namespace trapline {
namespace {

constexpr std::size_t kDeepestStack = 64;

void Print(const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(STDERR_FILENO, text.data() + done, text.size() - done);
    if (written <= 0) return;
    done += static_cast<std::size_t>(written);
  }
}

UnwindRegisters ToUnwind(const RegisterFile& file) {
  const std::uint64_t* const gpr = file.gpr;
  UnwindRegisters registers;
  registers.rax = gpr[0];
  registers.rcx = gpr[1];
  registers.rdx = gpr[2];
  registers.rbx = gpr[3];
  registers.rsp = gpr[4];
  registers.rbp = gpr[5];
  registers.rsi = gpr[6];
  registers.rdi = gpr[7];
  registers.r8 = gpr[8];
  registers.r9 = gpr[9];
  registers.r10 = gpr[10];
  registers.r11 = gpr[11];
  registers.r12 = gpr[12];
  registers.r13 = gpr[13];
  registers.r14 = gpr[14];
  registers.r15 = gpr[15];
  registers.rip = file.rip;
  return registers;
}

ModulesOptions WithoutMonitor() {
  ModulesOptions options;
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  if (length > 0) options.excluded_paths.emplace_back(self, static_cast<std::size_t>(length));
  return options;
}

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

std::string RaceDetectionOptions::Encode() const {
  return nlohmann::json{{"detector", detector},       {"json", json_path},
                        {"json_fd", json_descriptor}, {"suppressions", suppressions},
                        {"exit", error_exit_code},    {"verbose", verbose},
                        {"program", program}}
      .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

RaceDetectionOptions RaceDetectionOptions::Decode(const std::string& text) {
  RaceDetectionOptions options;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return options;
  options.detector = json.value("detector", options.detector);
  options.json_path = json.value("json", "");
  options.json_descriptor = json.value("json_fd", -1);
  options.suppressions = json.value("suppressions", "");
  options.error_exit_code = json.value("exit", -1);
  options.verbose = json.value("verbose", false);
  options.program = json.value("program", "");
  return options;
}

RaceDetection::RaceDetection(const RaceDetectionOptions& options,
                             std::function<bool(const std::string& path)> is_untracked)
    : options_(options),
      is_untracked_(std::move(is_untracked)),
      modules_(WithoutMonitor()),
      unwinder_(modules_),
      symbolizer_(modules_),
      reports_(symbolizer_, ReadSuppressions(options.suppressions),
               [&] {
                 RaceReportOptions report;
                 report.program = options.program;
                 return report;
               }()),
      contexts_(1),
      process_(getpid()) {
  MakeDetector();
}

void RaceDetection::MakeDetector() {
  detector_ = trapline::MakeDetector(options_.detector);
  if (!detector_)
    throw std::invalid_argument(fmt::format("there is no detector '{}'", options_.detector));
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

RaceDetection::Thread& RaceDetection::ThreadOf(ThreadId thread) { return threads_[thread]; }

void RaceDetection::Feed(const Event& event) {
  detector_->OnEvent(event, index_++);
  const auto races = detector_->races();
  for (; races_seen_ < races.size(); ++races_seen_) Report(races[races_seen_]);
}

std::vector<std::uint64_t> RaceDetection::Unwind(const RegisterFile& registers) {
  std::vector<std::uint64_t> stack(kDeepestStack);
  stack.resize(unwinder_.Unwind(ToUnwind(registers), memory_, stack));
  return stack;
}

std::uint32_t RaceDetection::Intern(Context context) {
  std::size_t hash = context.generation;
  const auto mix = [&hash](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  };
  for (const std::uint64_t pc : context.stack) mix(pc);
  for (const HeldLock& lock : context.locks) mix(lock.address + lock.ip);
  const auto [first, last] = context_ids_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (contexts_[it->second] == context) return it->second;
  }
  const auto id = static_cast<std::uint32_t>(contexts_.size());
  contexts_.push_back(std::move(context));
  context_ids_.emplace(hash, id);
  return id;
}

bool RaceDetection::IsBenign(std::uint64_t address, std::uint64_t size) const {
  auto it = benign_.upper_bound(address);
  return it != benign_.begin() && address + size <= std::prev(it)->second;
}

bool RaceDetection::IsUntracked(std::uint64_t ip) {
  if (is_runtime_code_ && is_runtime_code_(ip)) return true;
  const Module* const module = modules_.Find(ip);
  return module != nullptr && (module->is_vdso() || is_untracked_(module->path));
}

void RaceDetection::OnAccess(ThreadId thread, EventKind kind, std::uint64_t address,
                             std::uint64_t size, const RegisterFile& registers, bool in_runtime,
                             std::uint64_t ip) {
  Thread& state = ThreadOf(thread);
  if (state.thread_pointer == 0) state.thread_pointer = registers.fs_base;
  // What is not to be reported may still order threads.
  if (IsPlainAccess(kind) && ((IsWrite(kind) ? state.ignored_writes : state.ignored_reads) != 0 ||
                              IsBenign(address, size)))
    return;
  Context context{Unwind(registers), state.locks, modules_.generation()};
  std::uint64_t place = registers.rip;
  if (in_runtime) {
    // The program's innermost frame is to blame. Is there none right below the runtime's wrapper,
    // the runtime does this for itself.
    const auto caller = std::find_if(context.stack.begin(), context.stack.end(),
                                     [&](std::uint64_t pc) { return !IsUntracked(pc - 1); });
    if (ip != 0) {
      if (IsUntracked(ip - 1)) return;
      place = ip - 1;
    } else {
      constexpr std::ptrdiff_t kWrapperFrames = 2;
      if (caller == context.stack.end() || caller - context.stack.begin() > kWrapperFrames) return;
      place = *caller - 1;
    }
  }
  Event event{};
  event.kind = kind;
  event.order = trapline::IsAtomic(kind) ? MemoryOrder::kSeqCst : MemoryOrder::kRelaxed;
  if (kind == EventKind::kAtomicRead) event.order = MemoryOrder::kAcquire;
  if (kind == EventKind::kAtomicWrite) event.order = MemoryOrder::kRelease;
  event.thread = thread;
  event.address = address;
  event.size = size;
  event.ip = place;
  event.stack = Intern(std::move(context));
  Feed(event);
}

void RaceDetection::OnEdge(ThreadId thread, EventKind kind, std::uint64_t key) {
  if (ThreadOf(thread).ignored_synchronisation != 0) return;
  Event event{};
  event.kind = kind;
  event.thread = thread;
  event.address = key;
  Feed(event);
}

void RaceDetection::ClearHistory(ThreadId thread, std::uint64_t start, std::uint64_t end) {
  if (start >= end) return;
  Event event{};
  event.kind = EventKind::kClearHistory;
  event.thread = thread;
  event.address = start;
  event.size = end - start;
  Feed(event);
}

void RaceDetection::OnAllocate(ThreadId thread, const agent::QueuedEvent& event) {
  if (event.size != 0) {
    // Blocks that were freed and lie in the way are history now.
    auto it = blocks_.lower_bound(event.address);
    if (it != blocks_.begin()) {
      const auto before = std::prev(it);
      if (before->first + before->second.size > event.address) it = before;
    }
    while (it != blocks_.end() && it->first < event.address + event.size) it = blocks_.erase(it);
  }
  blocks_[event.address] = {event.size, event.ip, thread, false, 0, 0};
  if (threads_.size() > 1) ClearHistory(thread, event.address, event.address + event.size);
}

void RaceDetection::OnFree(ThreadId thread, const agent::QueuedEvent& event) {
  const auto block = blocks_.find(event.address);
  std::uint64_t size = event.size;
  if (block != blocks_.end()) {
    size = block->second.size;
    block->second.freed = true;
    block->second.free_ip = event.ip;
    block->second.freed_by = thread;
  }
  if (threads_.size() <= 1 || size == 0) return;
  const Thread& state = ThreadOf(thread);
  if (event.ip != 0 && !IsUntracked(event.ip - 1) && state.ignored_writes == 0) {
    // Whoever uses the block at the same time races with its end.
    constexpr std::uint64_t kLooksAt = 4096;  // bytes
    Event freed{};
    freed.kind = EventKind::kWrite;
    freed.thread = thread;
    freed.address = event.address;
    freed.size = std::min(size, kLooksAt);
    freed.ip = event.ip - 1;
    freed.stack = Intern({{event.ip - 1}, state.locks, modules_.generation()});
    if (!IsBenign(freed.address, freed.size)) Feed(freed);
    // The block keeps this write until it is given out again: a later use of it by another thread
    // races with its end.
    return;
  }
  ClearHistory(thread, event.address, event.address + size);
}

void RaceDetection::OnRuntimeEvent(ThreadId thread, const agent::QueuedEvent& queued) {
  Thread& state = ThreadOf(thread);
  Event event{};
  event.thread = thread;
  event.address = queued.address;
  event.ip = queued.ip;
  const auto synchronise = [&](EventKind kind) {
    if (state.ignored_synchronisation != 0) return;
    event.kind = kind;
    Feed(event);
  };
  // The object itself is memory too: who begins or ends it races with who uses it.
  const auto touch = [&](EventKind kind) {
    const auto& ignored = kind == EventKind::kWrite ? state.ignored_writes : state.ignored_reads;
    if (ignored != 0 || queued.ip == 0 || IsUntracked(queued.ip - 1) ||
        IsBenign(queued.address, 1)) {
      return;
    }
    Event access{};
    access.kind = kind;
    access.thread = thread;
    access.address = queued.address;
    access.size = 1;
    access.ip = queued.ip - 1;
    access.stack = Intern({{queued.ip - 1}, state.locks, modules_.generation()});
    Feed(access);
  };
  const auto take = [&](bool shared) {
    state.locks.push_back({queued.address, queued.size, shared, queued.ip});
  };
  const auto give_back = [&] {
    const auto held =
        std::find_if(state.locks.rbegin(), state.locks.rend(),
                     [&](const HeldLock& lock) { return lock.address == queued.address; });
    if (held != state.locks.rend()) state.locks.erase(std::next(held).base());
  };
  const auto count = [](unsigned& depth, bool up) {
    if (up) {
      ++depth;
    } else if (depth > 0) {
      --depth;
    }
  };
  switch (queued.kind) {
    case TRAPLINE_ACQUIRE:
      synchronise(EventKind::kAcquire);
      touch(EventKind::kAtomicRead);
      take(false);
      break;
    case TRAPLINE_RELEASE:
      touch(EventKind::kAtomicRead);
      synchronise(EventKind::kRelease);
      give_back();
      break;
    case TRAPLINE_ACQUIRE_SHARED:
      synchronise(EventKind::kAcquireShared);
      touch(EventKind::kAtomicRead);
      take(true);
      break;
    case TRAPLINE_RELEASE_SHARED:
      touch(EventKind::kAtomicRead);
      synchronise(EventKind::kReleaseShared);
      give_back();
      break;
    case TRAPLINE_HAPPENS_BEFORE:
      synchronise(EventKind::kHappensBefore);
      break;
    case TRAPLINE_HAPPENS_AFTER:
      synchronise(EventKind::kHappensAfter);
      break;
    case TRAPLINE_SYNC_CREATED:
    case TRAPLINE_SYNC_DESTROYED:
      touch(EventKind::kWrite);
      break;
    case TRAPLINE_SYNC_USED:
      touch(EventKind::kAtomicRead);
      break;
    case TRAPLINE_BARRIER_ENTER:
      touch(EventKind::kAtomicRead);
      synchronise(EventKind::kBarrierEnter);
      break;
    case TRAPLINE_BARRIER_LEAVE:
      synchronise(EventKind::kBarrierLeave);
      break;
    case TRAPLINE_JOIN:
      if (!threads_.contains(static_cast<ThreadId>(queued.address))) break;
      event.other = static_cast<ThreadId>(queued.address);
      event.address = 0;
      synchronise(EventKind::kJoin);
      break;
    case TRAPLINE_ALLOCATE:
      OnAllocate(thread, queued);
      break;
    case TRAPLINE_FREE:
      OnFree(thread, queued);
      break;
    case TRAPLINE_CLEAR_HISTORY:
      ClearHistory(thread, queued.address, queued.address + queued.size);
      break;
    case TRAPLINE_IGNORE_BEGIN:
    case TRAPLINE_IGNORE_END:
      if ((queued.size & 1) != 0) count(state.ignored_reads, queued.kind == TRAPLINE_IGNORE_BEGIN);
      if ((queued.size & 2) != 0) count(state.ignored_writes, queued.kind == TRAPLINE_IGNORE_BEGIN);
      break;
    case TRAPLINE_IGNORE_SYNC_BEGIN:
    case TRAPLINE_IGNORE_SYNC_END:
      count(state.ignored_synchronisation, queued.kind == TRAPLINE_IGNORE_SYNC_BEGIN);
      break;
    case TRAPLINE_BENIGN_RACE:
    case TRAPLINE_UNTRACK: {
      std::uint64_t& end = benign_[queued.address];
      end = std::max(end, queued.address + queued.size);
      break;
    }
    case TRAPLINE_TRACK:
      benign_.erase(queued.address);
      break;
    case TRAPLINE_THREAD_NAME: {
      char name[16] = {};
      if (memory_(queued.address, name, sizeof name - 1) && name[0] != 0) state.name = name;
      break;
    }
    default:
      break;  // a runtime newer than this monitor
  }
}

// --- threads and memory

void RaceDetection::OnStart(pid_t tid) {
  threads_.clear();
  ThreadOf(0).tid = tid;
}

void RaceDetection::OnThreadStart(ThreadId parent, ThreadId child,
                                  const RegisterFile& parent_registers, std::uint64_t stack_start,
                                  std::uint64_t stack_end, std::uint64_t thread_pointer) {
  Thread& state = ThreadOf(child);
  state.parent = parent;
  state.creation_stack = Unwind(parent_registers);
  state.stack_start = stack_start;
  state.stack_end = stack_end;
  state.thread_pointer = thread_pointer;
  // What lies there from before is not the new thread's.
  ClearHistory(parent, stack_start, stack_end);
  Event event{};
  event.kind = EventKind::kFork;
  event.thread = parent;
  event.other = child;
  Feed(event);
}

void RaceDetection::OnThreadRuns(ThreadId thread, pid_t tid) { ThreadOf(thread).tid = tid; }

void RaceDetection::OnThreadEnd(ThreadId thread) {
  Thread& state = ThreadOf(thread);
  ClearHistory(thread, state.stack_start, state.stack_end);
  Event event{};
  event.kind = EventKind::kThreadEnd;
  event.thread = thread;
  Feed(event);
  state.stack_start = state.stack_end = state.thread_pointer = 0;
}

void RaceDetection::OnFreshMemory(ThreadId thread, std::uint64_t start, std::uint64_t end) {
  ClearHistory(thread, start, end);
  unwinder_.OnUnmap(start, end);
  symbolizer_.OnUnmap(start, end);
}

void RaceDetection::OnMoved(ThreadId thread, std::uint64_t from, std::uint64_t to,
                            std::uint64_t length) {
  Event event{};
  event.kind = EventKind::kCopyHistory;
  event.thread = thread;
  event.address = to;
  event.aux = from;
  event.size = length;
  Feed(event);
  ClearHistory(thread, from, from + length);
}

void RaceDetection::OnQuiet(ThreadId thread) { ClearHistory(thread, 0, std::uint64_t{1} << 47); }

void RaceDetection::OnFork(ThreadId thread, pid_t tid) {
  // The parent reports what was found so far. The child's threads go on with new numbers, ordered
  // after everything.
  Thread survivor = ThreadOf(thread);
  survivor.tid = tid;
  survivor.locks.clear();
  threads_.clear();
  threads_[thread] = std::move(survivor);
  process_ = getpid();
  reports_.Clear();
  MakeDetector();
  index_ = 0;
  ended_ = false;
}

// --- reports

bool RaceDetection::IsAtomic(std::uint64_t ip, std::uint64_t address) {
  return symbolizer_.IsAtomicByDebugInfo(ip) || symbolizer_.IsAtomicVariable(address);
}

ReportThread RaceDetection::Describe(ThreadId thread) {
  const Thread& state = ThreadOf(thread);
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
  if (access.stack < contexts_.size()) {
    const Context& context = contexts_[access.stack];
    described.stack = context.stack;
    described.generation = context.generation;
    for (const HeldLock& lock : context.locks) {
      ReportLock report;
      report.address = lock.address;
      report.kind = LockKind(lock.kind, lock.shared);
      if (lock.ip != 0) report.acquisition_stack = {lock.ip};
      described.locks.push_back(std::move(report));
    }
  }
  if (described.stack.empty() && access.ip != 0) described.stack = {access.ip};
  return described;
}

ReportLocation RaceDetection::Locate(std::uint64_t address, std::uint64_t size) {
  if (address >= kDescriptorAddresses)
    return MappingLocation{fmt::format("file descriptor {}", (address - kDescriptorAddresses) / 8),
                           0};
  for (const auto& [number, state] : threads_) {
    // The block of thread-local variables lies right below the thread pointer, the stack below.
    constexpr std::uint64_t kLargestBlock = 1 << 20;
    if (address < state.thread_pointer && state.thread_pointer - address < kLargestBlock &&
        symbolizer_.ResolveThreadLocal(address, state.thread_pointer, memory_)) {
      return ThreadLocalLocation{Describe(number), state.thread_pointer};
    }
    if (address >= state.stack_start && address < state.stack_end)
      return StackLocation{Describe(number), {}};
  }
  auto after = blocks_.upper_bound(address + size - 1);
  if (after != blocks_.begin()) {
    const auto& [start, block] = *std::prev(after);
    if (address < start + block.size) {
      HeapLocation heap;
      heap.start = start;
      heap.size = block.size;
      if (block.ip != 0) heap.allocation_stack = {block.ip};
      heap.allocated_by = Describe(block.thread);
      heap.freed = block.freed;
      if (block.freed) {
        heap.free_stack = {block.free_ip};
        heap.freed_by = Describe(block.freed_by);
      }
      return heap;
    }
  }
  if (modules_.Find(address) != nullptr) return GlobalLocation{};
  if (const auto mapping = modules_.FindMapping(address)) {
    if (mapping->path == "[stack]") return StackLocation{Describe(0), {}};
    return MappingLocation{mapping->path, address - mapping->begin + mapping->offset};
  }
  return UnknownLocation{};
}

void RaceDetection::Report(const Race& race) {
  RaceReport report;
  report.accesses = {Describe(race.first), Describe(race.second)};
  // Memory that was moved in between: the earlier access is told by where its bytes are now.
  for (ReportAccess& access : report.accesses) {
    if (race.address >= access.address + access.size || access.address >= race.address + race.size)
      access.address = race.address;
  }
  report.location = Locate(race.address, race.size);
  report.process = process_;
  if (const auto text = reports_.Add(report)) {
    Print(*text);
    WriteJson();
  }
}

void RaceDetection::WriteJson() {
  if (json_.descriptor() < 0) return;
  if (const Status status = json_.Merge(reports_.ToJson()); !status.ok())
    Print(fmt::format("trapline: {}\n", status.message()));
}

int RaceDetection::OnExit(int status) {
  if (ended_) return status;
  ended_ = true;
  detector_->Finish();
  const auto races = detector_->races();
  for (; races_seen_ < races.size(); ++races_seen_) Report(races[races_seen_]);
  Print(reports_.Summary(options_.verbose));
  WriteJson();
  return options_.error_exit_code >= 0 && reports_.races() > 0 ? options_.error_exit_code : status;
}

}  // namespace trapline
