// What the monitor tells whoever looks for races: the execution as a stream of accesses and
// synchronisation in one total order that agrees with every order the program itself established.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "detector/event.h"
#include "guest-agent/agent.h"
#include "hypervisor/range.h"
#include "translator/memory_access.h"

namespace trapline {

// Where accesses to a file descriptor are told to be: in the half of the address space that no
// program has.
inline constexpr std::uint64_t kDescriptorAddresses = 0xffff900000000000;
constexpr std::uint64_t DescriptorAddress(int descriptor) {
  return kDescriptorAddresses + 8 * static_cast<std::uint64_t>(descriptor);
}

// Keys of edges (OnCachedAccesses below) are addresses of the program's, what it names itself, and
// what its system calls order (system_call_effects.cpp). From here on they are the monitor's own
// bookkeeping, which orders whatever the program says of its synchronisation.
inline constexpr std::uint64_t kMonitorKeys = 0x7dull << 56;
// By thread: what the user-level threads that it has run have done on it; ...
inline constexpr std::uint64_t kCarrierKeys = kMonitorKeys;
// ... what it may have released on pages that another one reads natively now.
inline constexpr std::uint64_t kOpenedKeys = kMonitorKeys | std::uint64_t{1} << 40;
// All threads at once.
inline constexpr std::uint64_t kAllThreadsKey = kMonitorKeys | std::uint64_t{1} << 41;
// By user-level thread: the switches to it.
inline constexpr std::uint64_t kFiberKeys = 0x7eull << 56;
// By owner and loss: what the owner of pages had done when it lost them.
inline constexpr std::uint64_t kLossKeys = 0x7full << 56;

// A call that has not returned.
struct CallFrame {
  std::uint64_t return_address = 0;
  std::uint64_t slot = 0;  // address at which the return address lies
};

// Calls never overlap (Tracking holds its mutex), come from any host thread, and must not call back
// into the monitor. Threads are named by logical number, which is never reused inside a process.
class ExecutionObserver {
 public:
  ExecutionObserver() = default;
  ExecutionObserver(const ExecutionObserver&) = delete;
  ExecutionObserver& operator=(const ExecutionObserver&) = delete;
  virtual ~ExecutionObserver() = default;

  // Code inside the program's own file that does not count (static_runtime.h); before OnStart.
  virtual void SetRuntimeCode(const std::function<bool(std::uint64_t address)>& /*is_runtime*/) {}

  // How to ask, during these calls, which calls a thread stands in, innermost first: those that it
  // has told of and whose return addresses still lie on its stack. Some may be missing or have
  // returned since. Before OnStart.
  using CallsOf = std::function<std::vector<CallFrame>(ThreadId thread)>;
  virtual void SetCallsOf(const CallsOf& /*calls_of*/) {}

  // [code.start, code.end) is a file's from `offset` on, to be executed. The parts of it,
  // ascending, whose accesses count though the file's do not (`counts`: all do, and none are asked
  // for). Their accesses come as any, and it is for the observer to tell whose they are.
  virtual std::vector<Range> OnCodeMapped(const std::string& /*file*/, const Range& /*code*/,
                                          std::uint64_t /*offset*/, bool /*counts*/) {
    return {};
  }
  // The process runs its first instruction.
  virtual void OnStart(pid_t tid) = 0;

  // Before the access is carried out, by the instruction at registers.rip or, `in_runtime`, by
  // untracked code on behalf of the program: then registers are those of the untracked code and
  // `ip` is the program's return address.
  virtual void OnAccess(ThreadId thread, EventKind kind, std::uint64_t address, std::uint64_t size,
                        const RegisterFile& registers, bool in_runtime, std::uint64_t ip) = 0;

  // The same for code that runs in the code cache, many at a time, in order: each access is about
  // to be, or has been, carried out by the program's instruction at Event::ip. Event::stack
  // (InternFrame): the calls it stands in. Among them is the taking and giving back of locks:
  // kAcquire, kRelease, kAcquireShared, kReleaseShared, with the trapline_lock_kind as Event::size,
  // each behind a kAtomicRead of no bytes, which is to become the look at the lock itself. So is
  // synchronisation that the monitor saw itself: kHappensBefore and kHappensAfter, and with
  // kOnlyOrders kAtomicRead, by which the thread may have seen what was released to the bytes by
  // atomic accesses, and kAtomicRmw, by which the kernel changes them atomically for it. What the
  // span holds may be changed.
  virtual void OnCachedAccesses(std::span<Event> accesses) = 0;
  // What was told so has been dealt with when this returns, races included. All other calls but
  // those that ask do that first.
  virtual void FinishAccesses() = 0;
  // Does some of the work that another thread, in the midst of telling accesses, leaves to others,
  // until `done`. That is asked after each bit of it and after WakeHelpers, and must be true once
  // that thread tells no more. These calls, and CallFrames, may come while there is another one.
  virtual void HelpUntil(const std::function<bool()>& done) = 0;
  virtual void WakeHelpers() = 0;
  // Whether among those may be EventKind::kMoment, kEarlierRead and kEarlierWrite; asked once.
  virtual bool TakesRepeats() { return false; }
  // Whether kTick and kLateRelease may be, instead of what is said of locks; asked once.
  virtual bool TakesLateReleases() { return false; }
  // Whether a plain access counts, so that repeating it has to be told of at most once.
  virtual bool MayRepeat(ThreadId thread, EventKind kind, std::uint64_t address, std::uint64_t size,
                         std::uint64_t ip) = 0;
  // The same for what the program's call that returns to `ip` makes untracked code access; `frame`:
  // of that code.
  virtual void OnCachedRuntimeAccess(ThreadId thread, EventKind kind, std::uint64_t address,
                                     std::uint64_t size, std::uint64_t ip, std::uint32_t frame) = 0;
  // A number for a call that returns to `return_address`, made in the call `caller`; 0 is no call.
  virtual std::uint32_t InternFrame(std::uint32_t caller, std::uint64_t return_address) = 0;
  // The calls that a thread with these registers stands in, innermost first.
  virtual std::vector<CallFrame> CallFrames(const RegisterFile& registers) = 0;
  // Around fork: no CallFrames is under way.
  virtual void LockForFork() {}
  virtual void UnlockAfterFork() {}

  // Something the program's runtime said (events.h), but for locks.
  virtual void OnRuntimeEvent(ThreadId thread, const agent::QueuedEvent& event) = 0;

  virtual void OnThreadStart(ThreadId parent, ThreadId child, const RegisterFile& parent_registers,
                             std::uint64_t stack_start, std::uint64_t stack_end,
                             std::uint64_t thread_pointer) = 0;
  virtual void OnThreadRuns(ThreadId thread, pid_t tid) = 0;
  virtual void OnThreadEnd(ThreadId thread) = 0;
  // `thread` does nothing until `other` has ended, unless a signal comes or it is cancelled.
  virtual void OnJoinBegin(ThreadId thread, ThreadId other) = 0;
  // From now on not all that `thread` does is told: it may run natively on pages of its own. Until
  // then all of it was since OnThreadStart, if that started it.
  virtual void OnNative(ThreadId /*thread*/) {}

  // `thread` makes user-level thread `fiber`, whose code will call itself so from then on, whoever
  // carries it. `ip`: where.
  virtual void OnFiberStart(ThreadId thread, ThreadId fiber, std::uint64_t ip) = 0;
  // What `thread` does from now on counts as done by `fiber`, or by itself. `orders`: after what it
  // has done so far. [left_start, left_end): the part of the stack about to be left that is used
  // until then.
  virtual void OnFiberSwitch(ThreadId thread, ThreadId fiber, bool orders, std::uint64_t left_start,
                             std::uint64_t left_end) = 0;
  virtual void OnFiberEnd(ThreadId fiber) = 0;
  virtual void OnFiberName(ThreadId fiber, const std::string& name) = 0;
  // `thread` is about to run a task as thread `task`, which may have been other tasks before, and
  // comes after nothing but those. `ip`: where it was created.
  virtual void OnTaskStart(ThreadId thread, ThreadId task, std::uint64_t ip) = 0;

  // What was done to [start, end) until now no longer counts.
  virtual void OnHistoryEnds(ThreadId thread, std::uint64_t start, std::uint64_t end) = 0;
  // `thread` makes [start, end) fresh memory, or moves its contents.
  virtual void OnFreshMemory(ThreadId thread, std::uint64_t start, std::uint64_t end) = 0;
  virtual void OnMoved(ThreadId thread, std::uint64_t from, std::uint64_t to,
                       std::uint64_t length) = 0;

  // The process's shared mapping of [start, end) is about to end.
  virtual void OnSharedMemoryEnds(std::uint64_t start, std::uint64_t end) = 0;

  // The history of [from, from + length) is that of [to, to + length), too.
  virtual void OnCopied(ThreadId thread, std::uint64_t from, std::uint64_t to,
                        std::uint64_t length) = 0;
  // Everything that any thread has done happens before what `thread` does next.
  virtual void OnAfterAll(ThreadId thread) = 0;

  // `thread` is the only one left and all that was done is ordered before now: histories may go.
  virtual void OnQuiet(ThreadId thread) = 0;

  // In the child after fork: only `thread` is left.
  virtual void OnFork(ThreadId thread, pid_t tid) = 0;

  // What the monitor of a program that execve starts is told: RunOptions::observer_options, and the
  // descriptors that it needs too. The execve may still fail, and it may be that of a vfork child.
  struct Handover {
    std::string options;
    std::vector<int> descriptors;
  };
  virtual Handover OnExecute() = 0;
  virtual void OnExecuteFailed() = 0;

  // The process ends with `status` (or by a signal: then status is ignored). Called at most once;
  // returns the status to end with.
  virtual int OnExit(int status) = 0;

  // Whether the plain load or store at `ip` is an atomic operation, and whether those of the
  // `size` bytes at `address` are, as far as debug info or the user says so. Both may be asked at
  // any time by any thread.
  virtual bool IsAtomicCode(std::uint64_t ip) = 0;
  virtual bool IsAtomicVariable(std::uint64_t address, std::uint64_t size) = 0;
  // Whether the user said that this plain load or store is no atomic operation, whatever else its
  // word is used for.
  virtual bool IsPlain(std::uint64_t /*ip*/, std::uint64_t /*address*/) { return false; }
  // The plain loads and stores that IsAtomicCode calls atomic since it was last asked this.
  virtual std::vector<std::uint64_t> TakeNewlyAtomicCode() { return {}; }
  // Whether the instruction at `ip` may turn out to be such a one, of the word at `address`.
  virtual bool MayBeAtomicCode(std::uint64_t /*ip*/, std::uint64_t /*address*/) { return false; }
  // Whether the plain load at `ip` may be an atomic one of which nobody knows: it is of code
  // without debug info, and a branch soon behind it depends on what it loads. At any time, by any
  // thread.
  virtual bool MayLoadAtomically(std::uint64_t /*ip*/) { return false; }
  // Whether the program's code in these ranges, all that counts, may order its threads by itself:
  // by atomic instructions, or by loads and stores for which IsAtomicCode or IsAtomicVariable, or a
  // rule that takes them for atomic, may say so; not only by calls of the runtime's functions.
  // Called with AddressSpace's mutex held, seldom.
  virtual bool MayOrderItself(std::span<const Range> /*code*/) { return true; }
  // Whether there may be variables at the address that debug info tells of.
  virtual bool IsInModule(std::uint64_t address) = 0;
};

}  // namespace trapline
