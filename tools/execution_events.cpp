#include "tools/execution_events.h"

#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <utility>

#include "hypervisor/error_output.h"
#include "hypervisor/kvm.h"
#include "hypervisor/link_target.h"
#include "hypervisor/process.h"
#include "replay/json_text.h"
#include "symbols/container_code.h"
#include "symbols/module_image.h"
#include "tools/order_switch.h"
#include "translator/locked_instructions.h"

namespace trapline {
namespace {

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

// What is left of an order if the access can do no more than its kind.
MemoryOrder OrderOfKind(EventKind kind, StatedOrder stated) {
  const bool acquires = kind != EventKind::kAtomicWrite && Includes(stated, StatedOrder::kAcquires);
  const bool releases = kind != EventKind::kAtomicRead && Includes(stated, StatedOrder::kReleases);
  if (acquires && releases) return MemoryOrder::kSeqCst;
  if (acquires) return MemoryOrder::kAcquire;
  return releases ? MemoryOrder::kRelease : MemoryOrder::kRelaxed;
}

Event EndOfHistory(ThreadId thread, std::uint64_t start, std::uint64_t end, std::uint64_t ip) {
  Event event{};
  event.kind = EventKind::kClearHistory;
  event.thread = thread;
  event.address = start;
  event.size = end - start;
  event.ip = ip;
  return event;
}

ModulesOptions WithoutMonitor() {
  ModulesOptions options;
  if (std::string self = OwnExecutable(); !self.empty())
    options.excluded_paths.push_back(std::move(self));
  return options;
}

}  // namespace

ExecutionEvents::ExecutionEvents(std::function<bool(const std::string& path)> is_untracked,
                                 const std::vector<std::string>& track,
                                 const std::vector<std::string>& untrack,
                                 const AtomicPlacesOptions& atomics)
    : is_untracked_(std::move(is_untracked)),
      untrack_(untrack),
      modules_(WithoutMonitor()),
      unwinder_(modules_),
      symbolizer_(modules_),
      places_(track, untrack, symbolizer_, place_use_),
      atomics_(atomics, symbolizer_, place_use_),
      ordering_(atomics.atomic, atomics.plain, track, is_untracked_, modules_) {
  SetDescriptorMover(&MoveOutOfTheWay);
  const auto note = [this](const char* option, const std::vector<std::string>& texts) {
    for (const std::string& text : texts)
      module_names_.emplace_back(text, place_use_.MarkOf(option, text));
  };
  note("--track", track);
  note("--untrack", untrack);
  note("--atomic", atomics.atomic);
  note("--plain", atomics.plain);
}

void ExecutionEvents::NoteModules() {
  modules_.Refresh();
  for (const Module* const module : modules_.Loaded()) {
    for (const auto& [glob, met] : module_names_) {
      if (NamesFile(glob, module->path)) *met = 1;
    }
  }
}

inline void ExecutionEvents::Complete(Event& event, Counts counts, ThreadState& thread) {
  event.order = trapline::IsAtomic(event.kind) && counts != Counts::kAsAccess
                    ? OrderOf(event, thread)
                    : MemoryOrder::kRelaxed;
  event.flags = counts == Counts::kAsOrder ? kOnlyOrders : 0;
  if (event.kind == EventKind::kRead) read_places_.Note(event.address, event.size, event.ip);
  if (atomics_.explains()) [[unlikely]]
    NoteForExplanation(event);
}

[[gnu::noinline]] void ExecutionEvents::NoteForExplanation(const Event& event) {
  if ((event.kind != EventKind::kAtomicRead && event.kind != EventKind::kAtomicWrite) ||
      ordering_.Contains(event.ip)) {
    return;
  }
  const std::lock_guard lock(said_mutex_);
  atomics_.Note(event.ip, event.kind, event.address, event.size);
}

void ExecutionEvents::Feed(std::span<const Event> events) {
  if (ended_ || events.empty()) return;
  FinishAccesses();
  if (pending_clear_) {
    const Event clear = *std::exchange(pending_clear_, std::nullopt);
    const Event& next = events.front();
    const bool becomes_atomic = trapline::IsAtomic(next.kind) && next.thread == clear.thread &&
                                next.address == clear.address && next.size == clear.size;
    if (!becomes_atomic) Feed(clear);
  }
  for (const auto& sink : sinks_) sink->OnEvents(events);
  ReportAll();
}

void ExecutionEvents::ReportAll() {
  for (const auto& sink : sinks_) sink->Report();
}

void ExecutionEvents::FinishAccesses() {
  if (backlog_->Finish()) ReportAll();
}

std::unique_ptr<EventBacklog> ExecutionEvents::MakeBacklog() {
  return std::make_unique<EventBacklog>([this](std::span<const Event> events) {
    for (const auto& sink : sinks_) sink->OnEvents(events);
  });
}

void ExecutionEvents::FeedAccess(ThreadId thread, EventKind kind, std::uint64_t address,
                                 std::uint64_t size, std::uint64_t ip, std::uint32_t context,
                                 Counts counts) {
  Event event{};
  event.kind = kind;
  event.thread = thread;
  event.address = address;
  event.size = size;
  event.ip = ip;
  event.stack = context;
  Complete(event, counts, ThreadOf(thread));
  Feed(event);
}

MemoryOrder ExecutionEvents::OrderOf(const Event& event, ThreadState& thread) {
  if (event.stack >= orders_.size()) orders_.resize(contexts_.size());
  KnownOrder& known = orders_[event.stack];
  if (!known.known) {
    known.known = true;
    known.early_store = Symbolizer::OrderAnswer::Unknown(IsWrite(event.kind)).early_store;
    const std::vector<std::uint64_t> calls = contexts_.stack(contexts_[event.stack].stack);
    // What the runtime reports is no instruction of the program's.
    if (!calls.empty() && calls.front() == event.ip) {
      const auto stated =
          symbolizer_.OrderOf(calls, IsWrite(event.kind), event.kind != EventKind::kAtomicWrite);
      known = {true, stated.order, stated.first_order, stated.early_store};
      const MemoryOrder order = OrderOfKind(event.kind, stated.first_order);
      if (atomics_.explains() && order != OrderOfKind(event.kind, StatedOrder::kBoth)) {
        const std::lock_guard lock(said_mutex_);
        atomics_.NoteOrder(event.ip, event.kind, order, stated);
      }
    }
  }
  const StatedOrder order =
      known.early_store != 0 ? OrderOfEarly(known, event.address, thread) : known.order;
  const bool overruled =
      order != StatedOrder::kBoth && SaidOf(event.ip, event.address) == AtomicPlaces::Said::kAtomic;
  return OrderOfKind(event.kind, overruled ? StatedOrder::kBoth : order);
}

StatedOrder ExecutionEvents::OrderOfEarly(const KnownOrder& store, std::uint64_t address,
                                          ThreadState& thread) {
  constexpr std::size_t kMostKept = 64;
  // At -O0 a statement stores to temporary variables, too.
  const bool on_stack = address >= thread.stack_start && address < thread.stack_end;
  if (!thread.all_told || on_stack) return store.order;
  // A statement always stores to the same object: what may be the same one is there, too.
  const auto is_same = [&](const std::pair<std::uint16_t, std::uint64_t>& made) {
    constexpr std::uint16_t kAnyStore = Symbolizer::OrderAnswer::kAnyStore;
    return made.first == kAnyStore ? made.second == address : made.first == store.early_store;
  };
  auto& done = thread.early_stores;
  if (std::any_of(done.begin(), done.end(), is_same)) return store.order;
  thread.all_told = done.size() < kMostKept;
  if (!thread.all_told) return store.order;
  done.emplace_back(store.early_store, address);
  return store.first_order;
}

std::vector<std::uint64_t> ExecutionEvents::Unwind(const RegisterFile& registers) {
  std::vector<std::uint64_t> stack(AccessContexts::kDeepestStack);
  stack.resize(unwinder_.Unwind(ToUnwind(registers), memory_, stack));
  return stack;
}

bool ExecutionEvents::IsIgnored(const ThreadState& thread, EventKind kind, std::uint64_t address,
                                std::uint64_t size, std::uint64_t ip) {
  const bool writes = IsWrite(kind) || kind == EventKind::kEarlierWrite;
  return (writes ? thread.ignored_writes : thread.ignored_reads) != 0 || ordering_.Silences(ip) ||
         benign_.Contains(address, size) || places_.Excludes(ip, address, size);
}

ExecutionEvents::Counts ExecutionEvents::CountsOf(const ThreadState& thread, EventKind kind,
                                                  std::uint64_t address, std::uint64_t size,
                                                  std::uint64_t ip) {
  const bool orders = trapline::IsAtomic(kind) && thread.ignored_synchronisation == 0;
  if (IsIgnored(thread, kind, address, size, ip))
    return orders ? Counts::kAsOrder : Counts::kNotAtAll;
  return orders || IsPlainAccess(kind) ? Counts::kFully : Counts::kAsAccess;
}

bool ExecutionEvents::IsUntracked(std::uint64_t ip) {
  return untracked_code_.Of(ip, modules_, [&] {
    if (is_runtime_code_ && is_runtime_code_(ip)) return true;
    const Module* const module = modules_.Find(ip);
    return module != nullptr &&
           (module->is_vdso() || is_untracked_(module->path) || ordering_.Silences(ip));
  });
}

std::vector<Range> ExecutionEvents::OnCodeMapped(const std::string& file, const Range& code,
                                                 std::uint64_t offset, bool counts) {
  std::erase_if(container_code_,
                [&](const Range& part) { return part.start < code.end && code.start < part.end; });
  std::vector<Range> parts;
  if (!counts && !AnyNamesFile(untrack_, file)) {
    for (const CodePart& part : ContainerCodeOf(file)) {
      const std::uint64_t begin = std::max(part.begin, offset);
      const std::uint64_t end = std::min(part.end, offset + (code.end - code.start));
      if (begin < end)
        parts.push_back({code.start + (begin - offset), code.start + (end - offset)});
    }
  }
  container_code_.insert(container_code_.end(), parts.begin(), parts.end());
  std::sort(container_code_.begin(), container_code_.end(),
            [](const Range& a, const Range& b) { return a.start < b.start; });
  const bool none = container_code_.empty();
  container_code_begin_ = none ? 0 : container_code_.front().start;
  container_code_size_ = none ? 0 : container_code_.back().end - container_code_begin_;
  return parts;
}

bool ExecutionEvents::IsInContainerCode(std::uint64_t ip) const {
  const auto after =
      std::upper_bound(container_code_.begin(), container_code_.end(), ip,
                       [](std::uint64_t value, const Range& part) { return value < part.start; });
  return after != container_code_.begin() && ip < std::prev(after)->end;
}

bool ExecutionEvents::IsAfterIndirectCall(std::uint64_t return_address) {
  return indirect_calls_.Of(return_address, modules_, [&] {
    constexpr std::uint8_t kCall = 0xe8, kIndirect = 0xff, kThroughTable = 0x15;
    std::array<std::uint8_t, 6> before{};
    return memory_(return_address - before.size(), before.data(), before.size()) &&
           before[1] != kCall && !(before[0] == kIndirect && before[1] == kThroughTable);
  });
}

bool ExecutionEvents::GiveToCaller(std::uint64_t& ip, std::uint32_t& frame) {
  const std::uint32_t outside =
      contexts_.Outside(frame, [this](std::uint64_t pc) { return IsContainerCode(pc); });
  if (outside == 0) return true;  // the stack is not known so far
  const std::uint64_t to = contexts_.ReturnAddressOf(outside);
  if (IsUntracked(to - 1)) return IsAfterIndirectCall(to);
  ip = to - 1;
  frame = contexts_.CallerOf(outside);
  return true;
}

void ExecutionEvents::OnAccess(ThreadId thread, EventKind kind, std::uint64_t address,
                               std::uint64_t size, const RegisterFile& registers, bool in_runtime,
                               std::uint64_t ip) {
  if (ThreadState& carrier = ThreadOf(thread); carrier.thread_pointer == 0)
    carrier.thread_pointer = registers.fs_base;
  checked_ = true;
  thread = Identity(thread, address);
  ThreadState& state = ThreadOf(thread);
  const Counts counts =
      CountsOf(state, kind, address, size, in_runtime && ip != 0 ? ip - 1 : registers.rip);
  if (counts == Counts::kNotAtAll) return;
  std::vector<std::uint64_t> stack = Unwind(registers);
  std::uint64_t place = registers.rip;
  if (const std::uint64_t made_by = in_runtime ? ip - 1 : registers.rip; IsContainerCode(made_by)) {
    // From where that is, outwards to who has called it.
    auto frame = std::find_if(stack.begin(), stack.end(),
                              [&](std::uint64_t pc) { return pc == (in_runtime ? ip : made_by); });
    while (frame != stack.end() && (*frame == made_by || IsContainerCode(*frame - 1))) ++frame;
    if (frame != stack.end()) {
      const bool is_untracked = IsUntracked(*frame - 1);
      if (is_untracked && !IsAfterIndirectCall(*frame)) return;
      if (is_untracked) {
        place = made_by;
      } else {
        place = *frame - 1;
        stack.erase(stack.begin(), frame);
      }
    }
  } else if (in_runtime) {
    // The program's innermost frame is to blame. Is there none right below the runtime's wrapper,
    // the runtime does this for itself.
    const auto caller = std::find_if(stack.begin(), stack.end(),
                                     [&](std::uint64_t pc) { return !IsUntracked(pc - 1); });
    if (ip != 0) {
      if (IsUntracked(ip - 1)) return;
      place = ip - 1;
    } else {
      constexpr std::ptrdiff_t kWrapperFrames = 2;
      if (caller == stack.end() || caller - stack.begin() > kWrapperFrames) return;
      place = *caller - 1;
    }
  }
  FeedAccess(thread, kind, address, size, place, ContextOf(state, stack), counts);
}

std::uint32_t ExecutionEvents::InternFrame(std::uint32_t caller, std::uint64_t return_address) {
  return contexts_.AddFrame(caller, return_address);
}

std::vector<CallFrame> ExecutionEvents::CallFrames(const RegisterFile& registers) {
  const std::lock_guard lock(call_frames_mutex_);
  std::vector<StackFrame> stack(AccessContexts::kDeepestStack);
  stack.resize(unwinder_.UnwindFrames(ToUnwind(registers), memory_, stack));
  std::vector<CallFrame> frames;
  for (std::size_t i = 0; i + 1 < stack.size(); ++i) {
    if (stack[i].cfa == 0 || !stack[i + 1].is_return_address) break;
    frames.push_back({stack[i + 1].pc, stack[i].cfa - sizeof(std::uint64_t)});
  }
  return frames;
}

std::vector<StackFrame> ExecutionEvents::FramesOf(ThreadId thread, const Access* newest) {
  if (!calls_of_) return {};
  const std::vector<CallFrame> calls = calls_of_(thread);
  std::vector<StackFrame> frames;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    StackFrame& frame = frames.emplace_back();
    frame.cfa = calls[i].slot + sizeof(std::uint64_t);
    frame.rbp = frame.cfa - 2 * sizeof(std::uint64_t);  // of functions that have a frame pointer
    if (i == 0) continue;
    frame.pc = calls[i - 1].return_address;
    frame.rsp = calls[i - 1].slot + sizeof(std::uint64_t);
    frame.is_return_address = true;
    // A call that has returned since, and another that was not told, stand for each other.
    if (!MayHaveCalled(calls[i].return_address, frame.pc)) {
      frames.pop_back();
      break;
    }
  }
  if (newest == nullptr) return frames;
  // There it is where it was then.
  const auto stack = contexts_.stack(contexts_[newest->stack].stack);
  if (stack.size() < 2) return frames;
  const auto caller = std::ranges::find(calls, stack[1], &CallFrame::return_address);
  const auto at = static_cast<std::size_t>(caller - calls.begin());
  if (at >= frames.size()) return frames;
  frames[at].pc = newest->ip;
  frames[at].is_return_address = false;
  // Unknown, it is where it is at calls: code with a frame pointer hardly ever pushes anything.
  if (const std::uint64_t rsp = StackPointerOf(frames[at]); rsp != 0) frames[at].rsp = rsp;
  return frames;
}

// Where the stack pointer is in a frame that has none but it; 0: not known.
std::uint64_t ExecutionEvents::StackPointerOf(const StackFrame& frame) {
  constexpr std::uint64_t kLargest = 1 << 20;
  StackFrame from_there;
  const UnwindRegisters registers{.rsp = frame.cfa, .rip = frame.pc};
  unwinder_.UnwindFrames(registers, memory_, {&from_there, 1});
  const std::uint64_t size = from_there.cfa - frame.cfa;
  return size < kLargest ? frame.cfa - size : 0;
}

// Whether the call that returns to `return_address` may be of the function in which the call before
// `inside` stands. False only where the call names another one, and not by a stub of the linker's.
bool ExecutionEvents::MayHaveCalled(std::uint64_t return_address, std::uint64_t inside) {
  constexpr std::uint64_t kLength = 5;
  std::array<unsigned char, kLength> code{};
  if (!memory_(return_address - kLength, code.data(), code.size())) return true;
  const auto call = Decode(code, return_address - kLength);
  if (!call || call->branch != Branch::kCall || call->length != kLength) return true;
  constexpr std::uint64_t kEndbr = 4;
  for (const std::uint64_t at : {call->target, call->target + kEndbr}) {
    const auto stub = InstructionAt(at);
    if (!stub || stub->branch == Branch::kIndirectJump) return true;
  }
  const auto function_at = [this](std::uint64_t pc) {
    return symbolizer_.ResolveCode(pc).frames.back().function;
  };
  const std::string callee = function_at(call->target), function = function_at(inside - 1);
  return callee.empty() || function.empty() || callee == function;
}

bool ExecutionEvents::Orders(const Event& edge) {
  ThreadState& state = ThreadOf(edge.thread);
  const bool of_monitor = IsEdge(edge.kind) && edge.address >= kMonitorKeys;
  if (state.ignored_synchronisation != 0 && !of_monitor) return false;
  // The end of an access too weak for that.
  return edge.kind != EventKind::kAtomicRead ||
         std::exchange(state.unacquired_size, 0) != edge.size || state.unacquired != edge.address;
}

void ExecutionEvents::OnCachedAccesses(std::span<Event> accesses) {
  const bool nothing_said = benign_.empty() && places_.empty() && !ordering_.SilencesAny();
  std::size_t count = 0;
  ThreadState* state = nullptr;
  ThreadId thread = 0;
  bool all_count = false;
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    const Event& access = accesses[i];
    if (access.kind == EventKind::kMoment || access.kind == EventKind::kTick ||
        access.kind == EventKind::kLateRelease) {
      if (access.kind == EventKind::kTick) ThreadOf(access.thread).looked_at = 0;
      Event& kept = accesses[count++];
      if (&kept != &access) kept = access;
      continue;
    }
    if (IsEdge(access.kind) || access.flags == kOnlyOrders) {
      Event edge = access;
      edge.thread = Identity(edge.thread);
      if (!Orders(edge)) continue;
      if (Event& polled = ThreadOf(edge.thread).polled; polled.size != 0) [[unlikely]] {
        const bool is_its_end = edge.kind == EventKind::kAtomicRead && polled.size == edge.size &&
                                polled.address == edge.address;
        if (is_its_end) edge = polled;
        polled.size = 0;
      }
      accesses[count++] = edge;
      ++interruptions_;
      continue;
    }
    if (access.kind == EventKind::kAtomicRead && access.size == 0) {
      count += OnLock(accesses[++i], &accesses[count]);
      continue;
    }
    checked_ = true;
    if (IsContainerCode(access.ip) && !GiveToCaller(accesses[i].ip, accesses[i].stack)) continue;
    const ThreadId identity = Identity(access.thread, access.address);
    if (state == nullptr || identity != thread) {
      thread = identity;
      state = &ThreadOf(thread);
      all_count = nothing_said && state->ignored_reads == 0 && state->ignored_writes == 0 &&
                  state->ignored_synchronisation == 0;
    }
    const Counts counts =
        all_count ? Counts::kFully
                  : CountsOf(*state, access.kind, access.address, access.size, access.ip);
    if (counts == Counts::kNotAtAll) continue;
    // In place: copying what has just been stored field by field would have to wait for the stores.
    Event& kept = accesses[count++];
    if (&kept != &access) kept = access;
    kept.thread = thread;
    kept.stack = ContextOf(*state, kept.ip, kept.stack);
    Complete(kept, counts, *state);
    if (trapline::IsAtomic(kept.kind)) [[unlikely]] {
      const bool acquires_later =
          kept.kind == EventKind::kAtomicRead || kept.kind == EventKind::kAtomicRmw;
      state->unacquired_size = acquires_later && !Acquires(kept.order) ? kept.size : 0;
      state->unacquired = kept.address;
      state->looked_at = 0;
      state->polled.size = 0;
      const bool polls = finds_waiting_loops_ && counts == Counts::kFully &&
                         kept.kind == EventKind::kAtomicRead && BareAccessAt(kept.ip).waits;
      if (polls) state->polled = kept;
    }
  }
  if (count == 0 || ended_) return;
  const std::span<const Event> complete = accesses.first(count);
  if (pending_clear_ || !may_run_beside_) {
    Feed(complete);
  } else if (backlog_->Add(complete)) {
    ReportAll();
  }
}

std::size_t ExecutionEvents::OnLock(Event event, Event* told) {
  const HeldLock lock{event.address, event.size, IsOfSharedLock(event.kind), event.ip};
  const bool takes = !IsReleaseOfLock(event.kind);
  const ThreadId thread = Identity(event.thread);
  ThreadState& state = ThreadOf(thread);
  if (!takes) {  // a lock does not protect itself
    const auto held =
        std::find_if(state.locks.rbegin(), state.locks.rend(),
                     [&](const auto& other) { return other.address == lock.address; });
    if (held != state.locks.rend()) {
      state.locks.erase(std::next(held).base());
      state.locks_changed = true;
    }
  }
  Event* next = told;
  // The lock itself is memory, too: who begins or ends it races with who uses it. Taking it does
  // not order the taker after its making, so it is looked at first. In one epoch to look once is
  // enough (FastTrack's READ SAME EPOCH).
  bool looked =
      lock.address != 0 && state.looked_at == lock.address && state.looked_when == interruptions_;
  if (!looked && state.ignored_reads == 0 && lock.ip != 0 && !IsUntracked(lock.ip - 1) &&
      !benign_.Contains(lock.address, 1)) {
    *next = {};
    next->kind = EventKind::kAtomicRead;
    next->thread = thread;
    next->address = lock.address;
    next->size = 1;
    next->ip = lock.ip - 1;
    next->stack = RuntimeContextOf(state, lock.ip - 1);
    ++next;
    looked = true;
  }
  state.looked_at = takes && looked ? lock.address : 0;
  state.looked_when = interruptions_;
  if (state.ignored_synchronisation == 0) {
    *next = event;
    next->thread = thread;
    next->size = 0;
    if (thread != event.thread) next->aux = 0;  // for one that others run nothing is told late
    ++next;
  }
  if (takes) {
    state.locks.push_back(lock);
    state.locks_changed = true;
  }
  return static_cast<std::size_t>(next - told);
}

bool ExecutionEvents::TakesRepeats() {
  return std::all_of(sinks_.begin(), sinks_.end(),
                     [](const auto& sink) { return sink->TakesRepeats(); });
}

bool ExecutionEvents::TakesLateReleases() {
  return std::all_of(sinks_.begin(), sinks_.end(),
                     [](const auto& sink) { return sink->TakesLateReleases(); });
}

bool ExecutionEvents::MayRepeat(ThreadId thread, EventKind kind, std::uint64_t address,
                                std::uint64_t size, std::uint64_t ip) {
  return CountsOf(ThreadOf(thread), kind, address, size, ip) == Counts::kFully;
}

void ExecutionEvents::OnCachedRuntimeAccess(ThreadId thread, EventKind kind, std::uint64_t address,
                                            std::uint64_t size, std::uint64_t ip,
                                            std::uint32_t frame) {
  const bool by_container = IsContainerCode(ip - 1);
  if (!by_container && IsUntracked(ip - 1)) return;
  // The calls from the one that returns to `ip` on are the runtime's own.
  frame = contexts_.CallerOf(frame, ip);
  --ip;
  if (by_container && !GiveToCaller(ip, frame)) return;
  Event access{};
  access.kind = kind;
  access.thread = thread;
  access.address = address;
  access.size = size;
  access.ip = ip;
  access.stack = frame;
  OnCachedAccesses(std::span(&access, 1));
}

void ExecutionEvents::FeedEdge(ThreadId thread, EventKind kind, std::uint64_t key) {
  Event event{};
  event.kind = kind;
  event.thread = Identity(thread);
  event.address = key;
  Feed(event);
}

void ExecutionEvents::ClearHistory(ThreadId thread, std::uint64_t start, std::uint64_t end,
                                   std::uint64_t ip) {
  if (start < end) Feed(EndOfHistory(thread, start, end, ip));
}

void ExecutionEvents::OnAllocate(ThreadId thread, const agent::QueuedEvent& event) {
  blocks_.Allocate(event.address, event.size, event.ip, thread);
  if (threads_.size() > 1)
    ClearHistory(thread, event.address, event.address + event.size, event.ip);
}

void ExecutionEvents::OnFree(ThreadId thread, const agent::QueuedEvent& event) {
  if (threads_.size() <= 1) {  // all that is to come is ordered after this
    blocks_.Forget(event.address);
    return;
  }
  const std::uint64_t size = blocks_.Free(event.address, event.ip, thread).value_or(event.size);
  if (size == 0) return;
  const ThreadState& state = ThreadOf(thread);
  if (event.ip != 0 && !IsUntracked(event.ip - 1) && state.ignored_writes == 0) {
    // Whoever uses the block at the same time races with its end.
    constexpr std::uint64_t kLooksAt = 4096;  // bytes
    const std::uint64_t freed = std::min(size, kLooksAt);
    if (!benign_.Contains(event.address, freed)) {
      FeedAccess(thread, EventKind::kWrite, event.address, freed, event.ip - 1,
                 RuntimeContextOf(state, event.ip - 1));
    }
    // The block keeps this write until it is given out again: a later use of it by another thread
    // races with its end.
    return;
  }
  ClearHistory(thread, event.address, event.address + size, event.ip);
}

void ExecutionEvents::OnRuntimeEvent(ThreadId thread, const agent::QueuedEvent& queued) {
  thread = Identity(thread);
  ThreadState& state = ThreadOf(thread);
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
        benign_.Contains(queued.address, 1)) {
      return;
    }
    Event access{};
    access.kind = kind;
    access.thread = thread;
    access.address = queued.address;
    access.size = 1;
    access.ip = queued.ip - 1;
    access.stack = RuntimeContextOf(state, queued.ip - 1);
    Feed(access);
  };
  const auto count = [](unsigned& depth, bool up) {
    if (up) {
      ++depth;
    } else if (depth > 0) {
      --depth;
    }
  };
  switch (queued.kind) {
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
    case TRAPLINE_IGNORE_BEGIN:
    case TRAPLINE_IGNORE_END:
      if ((queued.size & 1) != 0) count(state.ignored_reads, queued.kind == TRAPLINE_IGNORE_BEGIN);
      if ((queued.size & 2) != 0) count(state.ignored_writes, queued.kind == TRAPLINE_IGNORE_BEGIN);
      break;
    case TRAPLINE_IGNORE_SYNC_BEGIN:
    case TRAPLINE_IGNORE_SYNC_END:
      count(state.ignored_synchronisation, queued.kind == TRAPLINE_IGNORE_SYNC_BEGIN);
      state.all_told = false;
      break;
    case TRAPLINE_BENIGN_RACE:
    case TRAPLINE_UNTRACK:
      benign_.Add(queued.address, queued.address + queued.size);
      break;
    case TRAPLINE_TRACK:
      benign_.Remove(queued.address, queued.address + queued.size);
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

void ExecutionEvents::OnStart(pid_t tid) {
  threads_.clear();
  ThreadOf(0).tid = tid;
}

void ExecutionEvents::OnThreadStart(ThreadId parent, ThreadId child,
                                    const RegisterFile& parent_registers, std::uint64_t stack_start,
                                    std::uint64_t stack_end, std::uint64_t thread_pointer) {
  ThreadState& state = ThreadOf(child);
  ThreadOf(parent).thread_pointer = parent_registers.fs_base;
  parent = Identity(parent);
  state.parent = parent;
  state.creation_stack = Unwind(parent_registers);
  state.stack_start = stack_start;
  state.stack_end = stack_end;
  state.thread_pointer = thread_pointer;
  state.all_told = !user_level_threads_ && atomics_.options().plain.empty();
  // What lies there from before is not the new thread's.
  ClearHistory(parent, stack_start, stack_end);
  FeedFork(parent, child);
}

void ExecutionEvents::FeedFork(ThreadId parent, ThreadId child) {
  Event event{};
  event.kind = EventKind::kFork;
  event.stack = ContextOf(ThreadOf(parent), ThreadOf(child).creation_stack);
  event.thread = parent;
  event.other = child;
  Feed(event);
}

void ExecutionEvents::OnThreadRuns(ThreadId thread, pid_t tid) { ThreadOf(thread).tid = tid; }

void ExecutionEvents::OnThreadEnd(ThreadId thread) {
  running_.erase(thread);
  ThreadState& state = ThreadOf(thread);
  ClearHistory(thread, state.stack_start, state.stack_end);
  Event event{};
  event.thread = thread;
  // A robust mutex is handed on by the end of its owner; others nobody can take any more.
  event.kind = EventKind::kRelease;
  for (const HeldLock& lock : std::exchange(state.locks, {})) {
    event.address = lock.address;
    if (!lock.shared && state.ignored_synchronisation == 0) Feed(event);
  }
  event.address = 0;
  event.kind = EventKind::kThreadEnd;
  Feed(event);
  state.stack_start = state.stack_end = state.thread_pointer = 0;
  // Reports may name it for as long as the program runs: no more than that takes is kept.
  state.early_stores = {};
  state.creation_stack.shrink_to_fit();
}

void ExecutionEvents::OnJoinBegin(ThreadId thread, ThreadId other) {
  thread = Identity(thread);
  // Where the join does not count, the thread comes after nothing.
  if (ThreadOf(thread).ignored_synchronisation != 0 || !threads_.contains(other)) return;
  Event event{};
  event.kind = EventKind::kJoinBegin;
  event.thread = thread;
  event.other = other;
  Feed(event);
}

// --- user-level threads

ThreadId ExecutionEvents::Identity(ThreadId thread) const {
  if (running_.empty()) return thread;
  const auto runs = running_.find(thread);
  return runs == running_.end() ? thread : runs->second.fiber;
}

ThreadId ExecutionEvents::Identity(ThreadId thread, std::uint64_t address) const {
  if (running_.empty()) return thread;
  const auto runs = running_.find(thread);
  if (runs == running_.end()) return thread;
  const Running& running = runs->second;
  return address >= running.left_start && address < running.left_end ? running.before
                                                                     : running.fiber;
}

void ExecutionEvents::OnFiberStart(ThreadId thread, ThreadId fiber, std::uint64_t ip) {
  OnUserLevelThread();
  const ThreadId parent = Identity(thread);
  ThreadState& state = ThreadOf(fiber);
  state.tid = ThreadOf(thread).tid;
  state.parent = parent;
  if (ip != 0) state.creation_stack = {ip};
  FeedFork(parent, fiber);
}

void ExecutionEvents::OnFiberSwitch(ThreadId thread, ThreadId fiber, bool orders,
                                    std::uint64_t left_start, std::uint64_t left_end) {
  if (orders) FeedEdge(thread, EventKind::kHappensBefore, kFiberKeys | fiber);
  const ThreadId before = Identity(thread);
  running_[thread] = {fiber, before, left_start, left_end};
  if (fiber != thread) ThreadOf(fiber).tid = ThreadOf(thread).tid;
  Event event{};
  event.kind = EventKind::kIdentity;
  event.thread = fiber;
  event.other = thread;
  Feed(event);
  if (orders) FeedEdge(thread, EventKind::kHappensAfter, kFiberKeys | fiber);
}

void ExecutionEvents::OnFiberEnd(ThreadId fiber) {
  Event event{};
  event.kind = EventKind::kThreadEnd;
  event.thread = fiber;
  Feed(event);
}

void ExecutionEvents::OnFiberName(ThreadId fiber, const std::string& name) {
  ThreadOf(fiber).name = name;
}

void ExecutionEvents::OnTaskStart(ThreadId thread, ThreadId task, std::uint64_t ip) {
  OnUserLevelThread();
  const auto [known, is_new] = threads_.try_emplace(task);
  ThreadState& state = known->second;
  state.parent = Identity(thread);
  state.name = "OpenMP task";
  // Which of its tasks a report means is not known: all were created here, or nothing is said.
  if (is_new) {
    state.creation_stack = {ip};
  } else if (!state.creation_stack.empty() && state.creation_stack.front() != ip) {
    state.creation_stack.clear();
  }
}

void ExecutionEvents::OnUserLevelThread() {
  if (std::exchange(user_level_threads_, true)) return;
  for (auto& [thread, state] : threads_) state.all_told = false;
}

// --- memory

void ExecutionEvents::OnHistoryEnds(ThreadId thread, std::uint64_t start, std::uint64_t end) {
  const std::uint64_t reader = start < end ? read_places_.OnlyReader(start, end - start) : 0;
  if (reader == 0 || !IsPlainLoad(reader)) {
    ClearHistory(thread, start, end);
    return;
  }
  if (pending_clear_) Feed(*std::exchange(pending_clear_, std::nullopt));
  pending_clear_ = EndOfHistory(Identity(thread), start, end, 0);
}

void ExecutionEvents::OnFreshMemory(ThreadId thread, std::uint64_t start, std::uint64_t end) {
  ClearHistory(thread, start, end);
  unwinder_.OnUnmap(start, end);
  symbolizer_.OnUnmap(start, end);
  places_.OnUnmap();
  indirect_calls_.Forget(start, end);
  untracked_code_.Forget(start, end);
  plain_loads_.Forget(start, end);
  bare_accesses_.Forget(start, end);
  const std::lock_guard lock(said_mutex_);
  atomics_.OnUnmap(start, end);
}

void ExecutionEvents::OnSharedMemoryEnds(std::uint64_t start, std::uint64_t end) {
  if (ended_) return;
  for (const auto& sink : sinks_) sink->OnSharedMemoryEnds(start, end);
}

void ExecutionEvents::OnCopied(ThreadId thread, std::uint64_t from, std::uint64_t to,
                               std::uint64_t length) {
  Event event{};
  event.kind = EventKind::kCopyHistory;
  event.thread = thread;
  event.address = to;
  event.aux = from;
  event.size = length;
  Feed(event);
  // Locks that are held are given back by their new address.
  for (auto& [number, state] : threads_) {
    bool moved = false;
    for (HeldLock& lock : state.locks) {
      if (lock.address - from >= length) continue;
      lock.address += to - from;
      moved = true;
    }
    state.locks_changed |= moved;
  }
}

void ExecutionEvents::OnMoved(ThreadId thread, std::uint64_t from, std::uint64_t to,
                              std::uint64_t length) {
  OnCopied(thread, from, to, length);
  ClearHistory(thread, from, from + length);
}

void ExecutionEvents::OnAfterAll(ThreadId thread) {
  Event event{};
  event.kind = EventKind::kHappensBefore;
  event.address = kAllThreadsKey;
  for (const auto& [number, state] : threads_) {
    event.thread = number;
    Feed(event);
  }
  event.kind = EventKind::kHappensAfter;
  event.thread = Identity(thread);
  Feed(event);
}

void ExecutionEvents::OnQuiet(ThreadId thread) {
  ThreadOf(thread).all_told = false;
  ClearHistory(thread, 0, std::uint64_t{1} << 47);
}

void ExecutionEvents::OnFork(ThreadId thread, pid_t tid) {
  // The parent reports what was found so far. The child's threads go on with new numbers, ordered
  // after everything.
  ThreadState survivor = ThreadOf(thread);
  running_.clear();
  tells_unmet_ = false;
  survivor.tid = tid;
  survivor.locks.clear();
  survivor.locks_changed = true;
  survivor.all_told = false;
  threads_.clear();
  threads_[thread] = std::move(survivor);
  ended_ = false;
  atomics_.OnFork();
  // Threads that are not here may be in it.
  [[maybe_unused]] EventBacklog* const of_parent = backlog_.release();
  backlog_ = MakeBacklog();
  for (const auto& sink : sinks_) sink->OnForkedChild();
}

ExecutionObserver::Handover ExecutionEvents::OnExecute() {
  place_use_.Forget();
  Handover handover;
  nlohmann::json options = nlohmann::json::object();
  for (const auto& sink : sinks_) sink->OnExecute(options, handover.descriptors);
  options[AtomicPlacesOptions::kName] = atomics_.options();
  handover.options = JsonText(options, -1, true);
  return handover;
}

void ExecutionEvents::OnExecuteFailed() {
  for (const auto& sink : sinks_) sink->OnExecuteFailed();
}

int ExecutionEvents::OnExit(int status) {
  if (ended_) return status;
  ended_ = true;
  WriteError(atomics_.Explanation());
  if (atomics_.explains()) WriteError(ordering_.Explanation());
  if (tells_unmet_ && checked_ && !module_names_.empty()) {
    NoteModules();
    WriteError(place_use_.Unmet());
  }
  for (const auto& sink : sinks_) status = sink->OnExit(status);
  return status;
}

AtomicPlaces::Said ExecutionEvents::SaidOf(std::uint64_t ip, std::uint64_t address) {
  if (atomics_.empty()) return AtomicPlaces::Said::kNothing;
  const std::lock_guard lock(said_mutex_);
  return std::max(ip != 0 ? atomics_.OfCode(ip) : AtomicPlaces::Said::kNothing,
                  address != 0 ? atomics_.OfData(address) : AtomicPlaces::Said::kNothing);
}

bool ExecutionEvents::IsAtomicCode(std::uint64_t ip) {
  if (ordering_.ContainsNew(ip)) return !IsOfStack(ip);
  const AtomicPlaces::Said said = SaidOf(ip, 0);
  if (said != AtomicPlaces::Said::kNothing) return said == AtomicPlaces::Said::kAtomic;
  if (symbolizer_.IsAtomicByDebugInfo(ip)) return !IsUpdateByName(ip) && !IsWide(ip);
  Code code{};
  const bool is_read = memory_(ip, code.data(), code.size());
  if (is_read && BeginsOpenMpUpdate(ip, code)) return true;
  const bool waits = (!is_read || WaitingLoops::MayRepeat(ip, code)) && waiting_loops_.Repeat(ip) &&
                     LacksDebugInfo(symbolizer_.BareCodeAt(ip));
  const bool is_arm = !waits && IsInOrderSwitch(ip);
  const std::lock_guard lock(said_mutex_);
  if (waits) {
    finds_waiting_loops_ = true;
    atomics_.Presume(ip, Presumption::kWaitedFor);
  } else if (is_arm) {
    atomics_.Presume(ip, Presumption::kOrderSwitch);
  }
  return atomics_.IsPresumed(ip);
}

bool ExecutionEvents::IsInOrderSwitch(std::uint64_t ip) {
  if (!LacksDebugInfo(symbolizer_.BareCodeAt(ip))) return false;
  std::array<unsigned char, 2 * kOrderSwitchReach> code{};
  return memory_(ip - kOrderSwitchReach, code.data(), code.size()) &&
         trapline::IsInOrderSwitch(code, ip);
}

// Whether the instruction at `ip` is an update without lock prefix that only the name of the
// function tells to be atomic: what a compiler has inlined there may be anything.
bool ExecutionEvents::IsUpdateByName(std::uint64_t ip) {
  if (!LacksDebugInfo(symbolizer_.BareCodeAt(ip))) return false;
  const auto instruction = InstructionAt(ip);
  return instruction && IsPlainUpdate(*instruction);
}

// Whether the instruction at `ip` is a load or store of more than compilers make of an atomic one:
// it was moved to the line, or is of several objects.
bool ExecutionEvents::IsWide(std::uint64_t ip) const {
  constexpr std::uint32_t kWidest = 8;  // bytes
  const auto instruction = InstructionAt(ip);
  return instruction && MayBeAtomic(*instruction) && instruction->operands[0].size > kWidest;
}

// Whether the instruction at `ip` is the load by which a reduction or an atomic construct of OpenMP
// begins that is compiled to a loop around `lock cmpxchg`. Its line is any near the construct,
// which may stand in any function of a unit that is compiled for OpenMP.
bool ExecutionEvents::BeginsOpenMpUpdate(std::uint64_t ip, const Code& code) {
  constexpr unsigned char kLock = 0xf0;
  if (std::ranges::find(code, kLock) == code.end() || !LoadsForExchange(code, ip)) return false;
  if (symbolizer_.IsOpenMpByDebugInfo(ip)) return true;
  const std::string function = symbolizer_.ResolveCode(ip).frames.back().function;
  return function.find("._omp_fn.") != std::string::npos ||   // gcc
         function.find("omp_outlined") != std::string::npos;  // clang
}

std::optional<Instruction> ExecutionEvents::InstructionAt(std::uint64_t ip) const {
  std::array<unsigned char, kMaximumInstructionLength> bytes{};
  if (!memory_(ip, bytes.data(), bytes.size())) return std::nullopt;
  return Decode(bytes, ip);
}

// Whether the instruction at `ip` uses no memory but its thread's stack.
bool ExecutionEvents::IsOfStack(std::uint64_t ip) const {
  const auto instruction = InstructionAt(ip);
  if (!instruction) return false;
  const auto operands = instruction->memory();
  return std::all_of(operands.begin(), operands.end(), [](const MemoryOperand& operand) {
    return operand.base == kRsp && operand.segment == Segment::kNone;
  });
}

bool ExecutionEvents::IsAtomicVariable(std::uint64_t address, std::uint64_t size) {
  const AtomicPlaces::Said said = SaidOf(0, address);
  return said != AtomicPlaces::Said::kNothing ? said == AtomicPlaces::Said::kAtomic
                                              : symbolizer_.IsAtomicVariable(address, size);
}

bool ExecutionEvents::IsPlain(std::uint64_t ip, std::uint64_t address) {
  const AtomicPlaces::Said said = SaidOf(ip, address);
  if (said != AtomicPlaces::Said::kNothing) return said == AtomicPlaces::Said::kPlain;
  return IsPlainLoad(ip) && !symbolizer_.IsAtomicVariable(address, 1);
}

BareAccess ExecutionEvents::BareAccessAt(std::uint64_t ip) {
  return bare_accesses_.Of(ip, modules_, [&]() -> BareAccess {
    const auto instruction = InstructionAt(ip);
    if (!instruction || !MayComeOfAtomics(*instruction)) return {};
    return BareAccessOf(*instruction, ip, symbolizer_.BareCodeAt(ip), waiting_loops_);
  });
}

bool ExecutionEvents::MayBeAtomicCode(std::uint64_t ip, std::uint64_t address) {
  const BareAccess bare = BareAccessAt(ip);
  return (bare.code == BareCode::kRust || bare.waits) &&
         SaidOf(ip, address) != AtomicPlaces::Said::kPlain;
}

bool ExecutionEvents::MayLoadAtomically(std::uint64_t ip) {
  Code code{};
  return LacksDebugInfo(symbolizer_.BareCodeAt(ip)) && memory_(ip, code.data(), code.size()) &&
         WaitingLoops::MayRepeat(ip, code) && SaidOf(ip, 0) != AtomicPlaces::Said::kPlain;
}

bool ExecutionEvents::MayOrderItself(std::span<const Range> code) {
  // More is hardly ever without; to look takes some 10 ms for this.
  constexpr std::uint64_t kMostBytes = 2 << 20;
  if (!atomics_.empty()) return true;
  std::uint64_t bytes = 0;
  for (const auto& [start, end] : code) bytes += end - start;
  if (bytes > kMostBytes) return true;
  modules_.Refresh();  // what lies there now
  return std::ranges::any_of(code, [this](const Range& range) {
    const Module* const module = modules_.Find(range.start);
    if (module == nullptr || range.end > module->end) return true;
    std::vector<std::uint8_t> text(range.end - range.start);
    return ordering_.MayBeIn(*module) || !memory_(range.start, text.data(), text.size()) ||
           MayHoldLockedInstruction(text) || symbolizer_.MayHoldAtomics(*module);
  });
}

Meeting ExecutionEvents::Judge(const Access& first, const Access& second) {
  Meeting meeting{};
  backlog_->Alone([&] { meeting = JudgeAlone(first, second); });
  return meeting;
}

Meeting ExecutionEvents::JudgeAlone(const Access& first, const Access& second) {
  const auto is_said_plain = [this](const Access& access) {
    return SaidOf(access.ip, access.address) == AtomicPlaces::Said::kPlain;
  };
  const auto bare_of = [&](const Access& access) -> BareAccess {
    if (is_said_plain(access)) return {};
    BareAccess bare = BareAccessAt(access.ip);
    const std::lock_guard lock(said_mutex_);
    bare.waits = bare.waits || (!IsWrite(access.kind) && atomics_.IsWaitedFor(access.ip));
    return bare;
  };
  const Judgement judgement = JudgeMeeting(first, bare_of(first), second, bare_of(second));
  if (judgement.meeting == Meeting::kRace) {
    // What is known for an atomic operation by now may have been told of as a plain one.
    const auto is_atomic = [&](const Access& access) {
      if (trapline::IsAtomic(access.kind)) return true;
      if (is_said_plain(access)) return false;
      const std::lock_guard lock(said_mutex_);
      return atomics_.IsPresumed(access.ip);
    };
    if (!is_atomic(first) || !is_atomic(second)) return Meeting::kRace;
    return IsWrite(first.kind) && IsWrite(second.kind) ? Meeting::kNoOrder : Meeting::kOrder;
  }
  for (const Access& access : {first, second}) {
    if (trapline::IsAtomic(access.kind)) continue;
    const std::lock_guard lock(said_mutex_);
    if (atomics_.Presume(access.ip, judgement.why)) newly_atomic_.push_back(access.ip);
    atomics_.Note(access.ip,
                  IsWrite(access.kind) ? EventKind::kAtomicWrite : EventKind::kAtomicRead,
                  access.address, access.size);
  }
  return judgement.meeting;
}

bool ExecutionEvents::IsPlainLoad(std::uint64_t ip) {
  return plain_loads_.Of(ip, modules_, [&] {
    const auto instruction = InstructionAt(ip);
    const bool only_reads = instruction && instruction->effects_known &&
                            std::ranges::none_of(instruction->memory(), &MemoryOperand::writes);
    Code code{};
    return only_reads && symbolizer_.IsPlainBySource(ip) &&
           !(memory_(ip, code.data(), code.size()) && BeginsOpenMpUpdate(ip, code));
  });
}

}  // namespace trapline
