// The execution as the stream of events that detectors and trap logs work on, made of what the
// monitor sees; and beside it what reports say of an access beyond its event.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "detector/detector.h"
#include "detector/event.h"
#include "hypervisor/observer.h"
#include "shadow-pages/address.h"
#include "symbols/modules.h"
#include "symbols/symbolizer.h"
#include "symbols/unwinder.h"
#include "tools/access_contexts.h"
#include "tools/address_ranges.h"
#include "tools/atomic_places.h"
#include "tools/bare_access.h"
#include "tools/event_backlog.h"
#include "tools/heap_blocks.h"
#include "tools/ordering_modules.h"
#include "tools/read_places.h"
#include "tools/tracked_places.h"
#include "translator/instruction.h"

namespace trapline {

// Who works on the events. Calls never overlap, and come from any host thread.
class EventSink {
 public:
  EventSink() = default;
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;
  virtual ~EventSink() = default;

  // Detector::TakesRepeats.
  virtual bool TakesRepeats() const { return false; }
  // Detector::TakesLateReleases.
  virtual bool TakesLateReleases() const { return false; }
  // The next events in the total order. Event::stack is the number of an AccessContext.
  virtual void OnEvents(std::span<const Event> events) = 0;
  // Whether OnEvents uses nothing of ExecutionEvents but Judge, so that it may run beside that: all
  // else that it is to do then is done by Report.
  virtual bool MayRunBeside() const { return false; }
  // After OnEvents, at once or after several.
  virtual void Report() {}
  // In the child after fork: what was seen so far is its parent's. One thread is left.
  virtual void OnForkedChild() = 0;
  // Adds what the sink in a program that execve starts must know, under a name of its own, and the
  // descriptors that it needs. The execve may fail, and it may be that of a vfork child.
  virtual void OnExecute(nlohmann::json& options, std::vector<int>& descriptors) = 0;
  virtual void OnExecuteFailed() {}
  // The process's shared mapping of [start, end) is about to end, perhaps with the process or the
  // program.
  virtual void OnSharedMemoryEnds(std::uint64_t /*start*/, std::uint64_t /*end*/) {}
  // The process ends with `status`; returns the status to end with. The last call.
  virtual int OnExit(int status) = 0;
};

struct ThreadState {
  pid_t tid = 0;
  ThreadId parent = 0;
  std::string name;
  std::vector<std::uint64_t> creation_stack;
  std::uint64_t stack_start = 0, stack_end = 0, thread_pointer = 0;
  std::vector<HeldLock> locks;
  // Number of `locks`, once somebody asks for it (LockSetOf): most locks are given back before.
  mutable std::uint32_t lock_set = 0;
  mutable bool locks_changed = false;
  unsigned ignored_reads = 0, ignored_writes = 0, ignored_synchronisation = 0;
  // Its last access in the code cache, if it is an atomic one that acquires nothing when it is
  // done.
  std::uint64_t unacquired = 0, unacquired_size = 0;
  // The last atomic access, if it was a load in a loop that waits, which is told of before it is
  // made, and so again when it has been; else its size is 0.
  Event polled{};
  // The lock that it has looked at, while its epoch lasts, and `interruptions_` then.
  std::uint64_t looked_at = 0, looked_when = 0;
  // Whether everything that it has executed was told, and under its own name; and what of that has
  // an OrderAnswer::early_store, with the address; stores to its stack apart.
  bool all_told = false;
  std::vector<std::pair<std::uint16_t, std::uint64_t>> early_stores;
};

class ExecutionEvents : public ExecutionObserver {
 public:
  // `is_untracked`: whether a module's code does not count.
  // `track`, `untrack`: as TrackedPlaces takes them; `atomics`: as AtomicPlaces does. All of them:
  // as OrderingModules does.
  explicit ExecutionEvents(std::function<bool(const std::string& path)> is_untracked,
                           const std::vector<std::string>& track = {},
                           const std::vector<std::string>& untrack = {},
                           const AtomicPlacesOptions& atomics = {});

  // Each sink gets every event, in the order in which they were added.
  void AddSink(std::unique_ptr<EventSink> sink) {
    may_run_beside_ = may_run_beside_ && sink->MayRunBeside();
    sinks_.push_back(std::move(sink));
  }

  // At the end, to say which of the places that the user named were not met. For the process that
  // `trapline run` starts with; what other programs met is not known, and then nothing is said.
  void TellUnmetPlaces() { tells_unmet_ = true; }

  // --- for sinks, during their calls
  const std::map<ThreadId, ThreadState>& threads() const { return threads_; }
  const AccessContexts& contexts() const { return contexts_; }  // Event::stack is a number of them
  const HeapBlocks& blocks() const { return blocks_; }
  Modules& modules() { return modules_; }
  Symbolizer& symbolizer() { return symbolizer_; }
  // The frames in which the thread stands now, innermost first, as far as they are known. Each is
  // where it calls the next one, or, if `newest`, an access of the thread's, was made in it, there.
  std::vector<StackFrame> FramesOf(ThreadId thread, const Access* newest);
  // What two conflicting accesses are that nothing orders, the first one the earlier one
  // (JudgeMeeting). The plain instructions of those that order count as atomic from now on.
  Meeting Judge(const Access& first, const Access& second);

  void SetRuntimeCode(const std::function<bool(std::uint64_t address)>& is_runtime) override {
    is_runtime_code_ = is_runtime;
  }
  void SetCallsOf(const CallsOf& calls_of) override { calls_of_ = calls_of; }
  void OnStart(pid_t tid) override;
  void OnAccess(ThreadId thread, EventKind kind, std::uint64_t address, std::uint64_t size,
                const RegisterFile& registers, bool in_runtime, std::uint64_t ip) override;
  void OnCachedAccesses(std::span<Event> accesses) override;
  void FinishAccesses() override;
  void HelpUntil(const std::function<bool()>& done) override { backlog_->HelpUntil(done); }
  void WakeHelpers() override { backlog_->Wake(); }
  bool TakesRepeats() override;
  bool TakesLateReleases() override;
  bool MayRepeat(ThreadId thread, EventKind kind, std::uint64_t address, std::uint64_t size,
                 std::uint64_t ip) override;
  void OnCachedRuntimeAccess(ThreadId thread, EventKind kind, std::uint64_t address,
                             std::uint64_t size, std::uint64_t ip, std::uint32_t frame) override;
  std::uint32_t InternFrame(std::uint32_t caller, std::uint64_t return_address) override;
  std::vector<CallFrame> CallFrames(const RegisterFile& registers) override;
  void LockForFork() override { call_frames_mutex_.lock(); }
  void UnlockAfterFork() override { call_frames_mutex_.unlock(); }
  void OnRuntimeEvent(ThreadId thread, const agent::QueuedEvent& event) override;
  void OnThreadStart(ThreadId parent, ThreadId child, const RegisterFile& parent_registers,
                     std::uint64_t stack_start, std::uint64_t stack_end,
                     std::uint64_t thread_pointer) override;
  void OnThreadRuns(ThreadId thread, pid_t tid) override;
  void OnThreadEnd(ThreadId thread) override;
  void OnJoinBegin(ThreadId thread, ThreadId other) override;
  void OnNative(ThreadId thread) override { ThreadOf(thread).all_told = false; }
  void OnFiberStart(ThreadId thread, ThreadId fiber, std::uint64_t ip) override;
  void OnFiberSwitch(ThreadId thread, ThreadId fiber, bool orders, std::uint64_t left_start,
                     std::uint64_t left_end) override;
  void OnFiberEnd(ThreadId fiber) override;
  void OnFiberName(ThreadId fiber, const std::string& name) override;
  void OnTaskStart(ThreadId thread, ThreadId task, std::uint64_t ip) override;
  void OnHistoryEnds(ThreadId thread, std::uint64_t start, std::uint64_t end) override;
  void OnFreshMemory(ThreadId thread, std::uint64_t start, std::uint64_t end) override;
  void OnSharedMemoryEnds(std::uint64_t start, std::uint64_t end) override;
  void OnMoved(ThreadId thread, std::uint64_t from, std::uint64_t to,
               std::uint64_t length) override;
  void OnCopied(ThreadId thread, std::uint64_t from, std::uint64_t to,
                std::uint64_t length) override;
  void OnAfterAll(ThreadId thread) override;
  void OnQuiet(ThreadId thread) override;
  void OnFork(ThreadId thread, pid_t tid) override;
  Handover OnExecute() override;
  void OnExecuteFailed() override;
  int OnExit(int status) override;
  bool IsAtomicCode(std::uint64_t ip) override;
  bool IsAtomicVariable(std::uint64_t address, std::uint64_t size) override;
  bool IsPlain(std::uint64_t ip, std::uint64_t address) override;
  std::vector<std::uint64_t> TakeNewlyAtomicCode() override {
    return std::exchange(newly_atomic_, {});
  }
  bool MayBeAtomicCode(std::uint64_t ip, std::uint64_t address) override;
  bool MayLoadAtomically(std::uint64_t ip) override;
  bool MayOrderItself(std::span<const Range> code) override;
  std::vector<Range> OnCodeMapped(const std::string& file, const Range& code, std::uint64_t offset,
                                  bool counts) override;
  bool IsInModule(std::uint64_t address) override { return modules_.Find(address) != nullptr; }

 private:
  ThreadState& ThreadOf(ThreadId thread) { return threads_[thread]; }
  // What a thread runs. The switch is told before the stack is changed: the accesses to what
  // is left are still those of who ran before.
  struct Running {
    ThreadId fiber = 0, before = 0;
    std::uint64_t left_start = 0, left_end = 0;
  };
  // Under whose name a thread's events count: the user-level thread's that it runs, or its own; and
  // its access to `address`.
  ThreadId Identity(ThreadId thread) const;
  ThreadId Identity(ThreadId thread, std::uint64_t address) const;
  std::optional<Instruction> InstructionAt(std::uint64_t ip) const;
  bool IsOfStack(std::uint64_t ip) const;
  bool IsInOrderSwitch(std::uint64_t ip);
  bool IsWide(std::uint64_t ip) const;
  using Code = std::array<unsigned char, 64>;  // that begins with an instruction
  bool IsUpdateByName(std::uint64_t ip);
  std::uint64_t StackPointerOf(const StackFrame& frame);
  bool MayHaveCalled(std::uint64_t return_address, std::uint64_t inside);
  bool BeginsOpenMpUpdate(std::uint64_t ip, const Code& code);
  AtomicPlaces::Said SaidOf(std::uint64_t ip, std::uint64_t address);
  // The memory order of an atomic access by the thread whose context is known.
  MemoryOrder OrderOf(const Event& event, ThreadState& thread);
  void Feed(const Event& event) {
    ++interruptions_;
    Feed(std::span(&event, 1));
  }
  void Feed(std::span<const Event> events);
  void ReportAll();
  std::unique_ptr<EventBacklog> MakeBacklog();
  Meeting JudgeAlone(const Access& first, const Access& second);
  // A thread takes or gives back a lock, as OnCachedAccesses has it. The events of that, two at
  // most, go to `told`, where `event` may be, too; the answer is how many there are.
  std::size_t OnLock(Event event, Event* told);
  // What an access is, beyond what it does to memory: an atomic one that is not to be reported may
  // still order threads, and one that is to order nothing may still race.
  enum class Counts : std::uint8_t { kFully, kAsAccess, kAsOrder, kNotAtAll };

  Counts CountsOf(const ThreadState& thread, EventKind kind, std::uint64_t address,
                  std::uint64_t size, std::uint64_t ip);
  // Which of the user's names are those of modules.
  void NoteModules();
  // What an access's event has beyond what was seen of it; and what --explain is to say of it.
  void Complete(Event& event, Counts counts, ThreadState& thread);
  void NoteForExplanation(const Event& event);
  // There are user-level threads: who has run a fence for whom is not known any more.
  void OnUserLevelThread();
  // The child's ThreadState::creation_stack is known.
  void FeedFork(ThreadId parent, ThreadId child);
  void FeedAccess(ThreadId thread, EventKind kind, std::uint64_t address, std::uint64_t size,
                  std::uint64_t ip, std::uint32_t context, Counts counts = Counts::kFully);
  // Whether what the monitor itself saw, an edge or an atomic access with kOnlyOrders, orders.
  bool Orders(const Event& edge);
  void FeedEdge(ThreadId thread, EventKind kind, std::uint64_t key);
  void ClearHistory(ThreadId thread, std::uint64_t start, std::uint64_t end, std::uint64_t ip = 0);
  std::uint32_t LockSetOf(const ThreadState& thread) {
    if (std::exchange(thread.locks_changed, false))
      thread.lock_set = contexts_.AddLockSet(thread.locks);
    return thread.lock_set;
  }
  std::uint32_t ContextOf(const ThreadState& thread, std::span<const std::uint64_t> stack) {
    return contexts_.Of(stack, LockSetOf(thread), modules_.generation());
  }
  std::uint32_t ContextOf(const ThreadState& thread, std::uint64_t ip, std::uint32_t frame) {
    return contexts_.Of(ip, frame, LockSetOf(thread), modules_.generation());
  }
  std::vector<std::uint64_t> Unwind(const RegisterFile& registers);
  void OnAllocate(ThreadId thread, const agent::QueuedEvent& event);
  void OnFree(ThreadId thread, const agent::QueuedEvent& event);
  // Whether an access of the thread does not count as one.
  bool IsIgnored(const ThreadState& thread, EventKind kind, std::uint64_t address,
                 std::uint64_t size, std::uint64_t ip);
  // Whether the code at `ip` makes no accesses that count.
  bool IsUntracked(std::uint64_t ip);
  // Whether it is code of the C++ library's that counts as its caller's (container_code.h).
  bool IsContainerCode(std::uint64_t ip) const {
    return ip - container_code_begin_ < container_code_size_ && IsInContainerCode(ip);
  }
  bool IsInContainerCode(std::uint64_t ip) const;
  // Makes an access by such code that of whoever has called it: `ip`, and `frame`, the stack around
  // it. False if that is the library, for itself. (What it has called by a pointer is the
  // program's, and has ended in a jump.)
  bool GiveToCaller(std::uint64_t& ip, std::uint32_t& frame);
  // Whether the call that returns there is one by a pointer, the linker's tables aside.
  bool IsAfterIndirectCall(std::uint64_t return_address);
  // Whether the instruction only reads, and is no atomic load by the text of the source.
  bool IsPlainLoad(std::uint64_t ip);
  // An access at `ip` by a call of the runtime's: nothing is known of its caller's callers.
  std::uint32_t RuntimeContextOf(const ThreadState& thread, std::uint64_t ip) {
    return ContextOf(thread, ip, 0);
  }

  const std::function<bool(const std::string&)> is_untracked_;
  const std::vector<std::string> untrack_;
  std::function<bool(std::uint64_t)> is_runtime_code_;  // empty: none
  Modules modules_;
  CallsOf calls_of_;
  Unwinder unwinder_;
  std::mutex call_frames_mutex_;  // the only way into unwinder_ that others may be in at a fork
  Symbolizer symbolizer_;
  PlaceUse place_use_;
  TrackedPlaces places_;
  AtomicPlaces atomics_;
  OrderingModules ordering_;
  std::mutex said_mutex_;  // of atomics_, which translation asks about at any time
  std::vector<std::uint64_t> newly_atomic_;  // by Judge
  MemoryReader memory_ = OwnMemory();
  std::atomic<bool> finds_waiting_loops_{false};  // there were any
  WaitingLoops waiting_loops_{CodeSource{
      .read = [this](std::uint64_t address, void* out,
                     std::size_t size) { return memory_(address, out, size) ? size : 0; },
      .function_at =
          [this](std::uint64_t address) {
            return symbolizer_.ResolveCode(address).frames.back().function;
          },
      .import_at = [this](std::uint64_t slot) { return symbolizer_.ImportAt(slot); },
      .generation = [this] { return modules_.generation(); }}};
  std::vector<std::unique_ptr<EventSink>> sinks_;
  bool may_run_beside_ = true;  // all of them
  std::unique_ptr<EventBacklog> backlog_ = MakeBacklog();

  std::map<ThreadId, ThreadState> threads_;        // user-level ones, too
  std::unordered_map<ThreadId, Running> running_;  // threads that have run user-level ones
  AccessContexts contexts_;
  // What Symbolizer::OrderAnswer says, of atomic accesses by context, if asked for.
  struct KnownOrder {
    bool known = false;
    StatedOrder order = StatedOrder::kBoth, first_order = StatedOrder::kBoth;
    std::uint16_t early_store = 0;
  };
  // Of one that may be, or is, an early store.
  static StatedOrder OrderOfEarly(const KnownOrder& store, std::uint64_t address,
                                  ThreadState& thread);
  std::vector<KnownOrder> orders_;
  bool user_level_threads_ = false;  // there were any
  ReadPlaces read_places_;
  // A word is said to be atomic from now on, and all that is known to have read it is a plain load:
  // its history ends unless the next event is an atomic access to it.
  std::optional<Event> pending_clear_;
  // The latest answers to a question about instructions.
  template <class Answer>
  class CachedAnswers {
   public:
    // What decide() answers for the one at `ip`, asked again whenever modules came or went.
    template <class Decide>
    Answer Of(std::uint64_t ip, const Modules& modules, Decide&& decide) {
      // Code of one function lies close together, and many functions 4 KiB apart.
      Entry& entry = entries_[(ip * 0x9e3779b97f4a7c15) >> (64 - kBits)];
      if (entry.ip != ip || entry.generation != modules.generation()) {
        const Answer answer = decide();  // may be what finds the module
        entry = {ip, modules.generation(), answer};
        pages_.insert(AlignDown(ip, kPageSize));
      }
      return entry.answer;
    }
    // Other code may come to lie in [start, end), before anybody asks for its module.
    void Forget(std::uint64_t start, std::uint64_t end) {
      const auto page = pages_.lower_bound(AlignDown(start, kPageSize));
      if (page == pages_.end() || *page >= end) return;
      std::fill(entries_.begin(), entries_.end(), Entry{});
      pages_.clear();
    }

   private:
    struct Entry {
      std::uint64_t ip = 0;
      std::uint32_t generation = 0;
      Answer answer{};
    };
    // Enough for radiosity's 15,000 instructions; with 1,024 it asked anew 400,000 times.
    static constexpr unsigned kBits = 14;
    std::vector<Entry> entries_ = std::vector<Entry>(std::size_t{1} << kBits);
    // Of all instructions that were asked for. Most of what is unmapped never was code, and a page
    // is looked up faster than 16,384 entries are cleared: 0.2 ms for each stack of a thread.
    std::set<std::uint64_t> pages_;
  };
  // Ascending, and where all of it is.
  std::vector<Range> container_code_;
  std::uint64_t container_code_begin_ = 0, container_code_size_ = 0;
  CachedAnswers<bool> indirect_calls_;  // IsAfterIndirectCall, by return address
  CachedAnswers<bool> untracked_code_;  // IsUntracked
  CachedAnswers<bool> plain_loads_;     // IsPlainLoad
  BareAccess BareAccessAt(std::uint64_t ip);
  CachedAnswers<BareAccess> bare_accesses_;
  std::uint64_t interruptions_ = 0;  // events beside accesses and locks of OnCachedAccesses
  HeapBlocks blocks_;
  AddressRanges benign_;  // accesses within them do not count
  bool ended_ = false;
  bool tells_unmet_ = false;
  bool checked_ = false;  // an access was
  // Globs of --track and its kin, which may be those of modules; and what to set if they are.
  std::vector<std::pair<std::string, std::uint8_t*>> module_names_;
};

}  // namespace trapline
