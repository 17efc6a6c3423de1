// A guest thread: a host thread that runs one thread of the program on a carrier.
//
// The host thread is the guest thread as far as the kernel is concerned (same tid, mask, name,
// limits, scheduling); it makes the program's system calls itself. The guest scheduler is therefore
// the host's: a guest thread keeps its carrier for life, and its thread page is filled when it gets
// the carrier.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "hypervisor/adaptive_policy.h"
#include "hypervisor/client_requests.h"
#include "hypervisor/guest_code_cache.h"
#include "hypervisor/instruction_cache.h"
#include "hypervisor/machine.h"
#include "hypervisor/runtime_call_tracker.h"
#include "hypervisor/signals.h"
#include "translator/instruction.h"
#include "translator/memory_access.h"

namespace trapline {

class Process;
class Tracking;
enum class FaultVerdict;

class GuestThread {
 public:
  GuestThread(Process& process, SignalActions& actions, Carrier& carrier,
              std::uint64_t logical_number);

  // The guest thread the calling host thread runs; nullptr in a host thread without one.
  // Async-signal-safe.
  static GuestThread* Current();
  // After a vfork child borrowed the parent's thread-local storage.
  static void SetCurrent(GuestThread* thread);

  // Runs the program's code until the thread ends; returns the status it gave to exit(2). The
  // calling host thread becomes this guest thread. Calls that end or replace the process do not
  // return.
  int Run();

  // --- for the host's signal handler; async-signal-safe
  // Remembers a signal for delivery and makes the thread leave the guest. False: the program has no
  // handler.
  bool RecordSignal(int signal, const siginfo_t& info);

  // --- state other parts of the monitor set up or read
  Carrier& carrier() { return *carrier_; }
  Process& process() { return *process_; }
  // The actions of the process the thread belongs to: a vfork child shares all of Process but
  // these.
  SignalActions& signal_actions() { return *actions_; }
  bool signal_pending() const { return signal_pending_ != 0; }
  int exit_status() const { return exit_status_; }
  SignalMask mask() const { return mask_; }
  void set_mask(SignalMask mask) { mask_ = mask & ~kUnblockable; }
  // The program's registers; valid while the thread is out of the guest and detached (Detach), or
  // before Run().
  kvm_regs& context() { return context_; }
  // A new thread starts with a context of its own instead of the carrier's registers.
  void StartDetached(const kvm_regs& context);
  void SetFsBase(std::uint64_t base);
  void SetGsBase(std::uint64_t base);
  std::uint64_t fs_base() { return carrier_->vcpu().special_registers().fs.base; }
  std::uint64_t gs_base();
  std::uint64_t clear_child_tid = 0;   // set_tid_address / CLONE_CHILD_CLEARTID
  std::uint64_t robust_list_head = 0;  // set_robust_list
  AlternateStack alternate_stack;
  bool is_vfork_child = false;
  bool starts_process = false;  // the program's initial thread
  agent::ThreadCounters& counters() { return carrier_->thread_page().counters; }
  std::uint64_t logical_number() const { return logical_number_; }

  // Makes a system call with the program's arguments that a signal can interrupt.
  long Interruptible(long number, const std::uint64_t arguments[6]);
  long Interruptible(long number, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0,
                     std::uint64_t d = 0, std::uint64_t e = 0, std::uint64_t f = 0) {
    const std::uint64_t arguments[6] = {a, b, c, d, e, f};
    return Interruptible(number, arguments);
  }

  // The program's registers as they are now, for whoever looks at its memory or its stack.
  RegisterFile Registers();
  // Chooses what the thread sees of the memory from its next entry on.
  void EnterView(View view);

  // Accesses count from now on: no code is hot yet.
  void StartTracked();

  // Takes the program's registers and vector state out of the vCPU into context() and the carrier's
  // vector image, so that both can be changed. The next entry restores them.
  void Detach();

  // Ends Run() with `status` after the current system call.
  void RequestExit(int status) {
    exit_requested_ = true;
    exit_status_ = status;
  }

  // Sends a signal the program caused itself (a fault): if it is blocked or ignored, the process
  // dies of it.
  void ForceSignal(const SignalDelivery& delivery);
  // Ends the process as that signal's default action does. Returns only if a debugger keeps the
  // signal from the thread.
  void DieOf(int signal);

 private:
  enum class Place { kProgram, kSystemCall, kException };

  // An instruction that touches shared pages is being let through: one step in View::kWhole.
  struct Step {
    std::uint64_t rip = 0;       // of the instruction
    bool program_traps = false;  // the program had the trap flag set itself
    bool pushes_flags = false, pops_flags = false;
    bool checks_each_round = false;  // repeated compare or scan: its end is not known before
    bool holds_atomic_lock = false;
  };

  struct CacheEntry {
    std::uint64_t address = 0;
    std::vector<CallFrame> frames;  // the program's calls, innermost first
  };

  // --- guest_thread.cpp: the run loop and exits
  void HandleExit();
  void DropOutdatedCode();
  void HandleInterruption();
  void GrowRepeatTable();
  void RunToExit();
  void HandleMemoryError();
  void HandleSystemCall();
  void StartFibers();
  void HandleRuntimeAccess(RegisterFile registers);
  bool HandleClientRequest();
  GuestCodeCache* code_cache();
  [[noreturn]] void Abort(const std::string& what);

  // --- thread_registers.cpp: out of the guest and back into it
  void MarkSegmentsDirty();
  void Resume();
  bool IsResuming();
  // The vCPU goes on at an entry of the agent that saves or restores the vector state.
  void BeginVectorEntry(const char* entry);
  void SaveVectorState();
  void LeaveAtOnceIfSignalled();
  kvm_regs ProgramRegisters();
  kvm_regs RegistersAtExit();
  std::uint64_t InterruptedAt();
  void SetTrapFlag(bool on);

  // --- thread_exceptions.cpp: and page faults
  void DeliverPageFault();
  std::optional<Instruction> FaultingInstruction(std::size_t longest, bool again);
  void HandleException(unsigned vector);
  bool KnowsEffects();
  bool Touches(std::uint64_t address);
  bool HandleImpossibleAccess();
  bool IsByMirrorsBase(std::uint64_t address, std::uint64_t rip) const;
  void HandlePortAccess();
  bool EmulateVsyscall(std::uint64_t address);
  void HandlePageFault(std::uint64_t error_code);
  // As ForceSignal, for what an exception of the program, which is detached, becomes.
  void ForceException(unsigned vector, std::uint64_t error_code);

  // --- thread_code_cache.cpp: into it, out of it to native code
  bool AtProgramBoundary();
  void RequestLeave();
  void FinishLeave();
  bool PrefersNative();
  bool OwesAccess();
  void GoNative();
  bool EnterCache();
  std::uint64_t ResumeAddress();
  CacheEntry EnterCacheAt(const RegisterFile& registers, Coverage coverage);
  void EnterPartial();
  void LeavePartial();
  bool PrefersPartial();
  void BeginStay(Coverage coverage, std::uint64_t rip);
  std::int64_t EndStint(std::uint64_t now);
  void NoteNativeEntry(std::uint64_t now);
  void MayBeRedirected();
  std::optional<std::uint64_t> InRedirect();
  bool AbandonRedirect(bool faulted);
  void FollowRedirect();
  void HandleCacheExit();
  void RefuseBranch(std::uint64_t rip);
  void ReturnToRegion();
  void HandleCacheCall();
  bool TouchesUnmirrored(std::uint64_t address, std::uint64_t rip);
  bool IsOfMirror(std::uint64_t address, std::uint64_t rip);
  FaultVerdict ResolveCached(std::uint64_t& address, bool write, std::uint64_t rip);
  void EndCachePause();

  // --- thread_steps.cpp: instructions that are let through one at a time
  void NoteViewChange(bool to_tracked);
  void NoteArrival(std::uint64_t rip, std::uint64_t rsp);
  bool StartStep(bool chained, std::uint64_t fault_address, bool write);
  bool RepeatInMonitor(const Instruction& instruction, std::uint64_t flags);
  void WarnOfWritableCode(std::uint64_t rip);
  void FinishStep();
  void CancelStep();

  // --- thread_signals.cpp: their delivery
  void DeliverPendingSignals();
  void Deliver(const SignalDelivery& delivery, const KernelSigaction& action);

  Process* process_;
  SignalActions* actions_;
  Carrier* carrier_;
  const std::uint64_t logical_number_;
  SignalMask mask_ = 0;

  kvm_regs context_{};
  View view_ = View::kWhole;
  std::uint64_t gs_base_ = 0;  // the program's, while it is not in the vCPU
  bool leaving_ = false;       // stepping to where the code cache can be left
  // In a system call whose return address is in the code cache.
  std::optional<GuestCodeCache::Pause> cache_pause_;
  std::optional<AdaptivePolicy> adaptive_;  // nothing: never leaves it for native code
  // Accesses that it is still to make in partial code, while it is in full code for a few.
  std::int64_t partial_left_ = 0;
  // Where it went over to the code cache last, to make an access that it could not make natively.
  std::uint64_t returned_at_ = 0;
  // When the guest was entered natively last: processor time in ns, time stamp counter.
  std::uint64_t entered_at_ = 0, entered_at_count_ = 0;
  // By which it got into the code cache without leaving the guest, until the exit after that has
  // been handled.
  std::uint64_t redirected_by_ = 0;
  bool abandoned_redirect_ = false;  // the next fault is for the monitor
  bool told_of_little_cache_ = false;
  bool may_hold_fault_ = false;  // KVM, of the gate that was abandoned
  std::optional<Step> step_;
  ClientRequests client_requests_;
  RuntimeCallTracker runtime_calls_;  // of a statically linked program
  bool detached_ = false;
  bool exit_requested_ = false;
  int exit_status_ = 0;
  Place place_ = Place::kProgram;  // where the last exit happened
  unsigned exception_vector_ = 0;
  bool restart_system_call_ = false;
  long system_call_number_ = 0;
  std::uint64_t last_fault_address_ = 0, last_fault_rip_ = 0;
  RecentInstructions recent_instructions_;
  unsigned repeated_faults_ = 0;
  std::uint64_t memory_error_rip_ = 0;
  unsigned repeated_memory_errors_ = 0;

  // Written by the host's signal handler on this very thread.
  volatile std::uint8_t signal_pending_ = 0;
  int recorded_signal_ = 0;
  siginfo_t recorded_info_{};
};

}  // namespace trapline
