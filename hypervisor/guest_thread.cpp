// The run loop, and what the thread leaves the guest for.
#include "hypervisor/guest_thread.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "hypervisor/address_space.h"
#include "hypervisor/agent_code.h"
#include "hypervisor/clock.h"
#include "hypervisor/futexes.h"
#include "hypervisor/guest_copy.h"
#include "hypervisor/process.h"
#include "hypervisor/processor_exceptions.h"
#include "hypervisor/system_call_effects.h"
#include "hypervisor/system_calls.h"
#include "hypervisor/tracking.h"
#include "hypervisor/vcpu_registers.h"

namespace trapline {
namespace {

thread_local GuestThread* current_thread = nullptr;

}  // namespace

GuestThread::GuestThread(Process& process, SignalActions& actions, Carrier& carrier,
                         std::uint64_t logical_number)
    : process_(&process),
      actions_(&actions),
      carrier_(&carrier),
      logical_number_(logical_number),
      runtime_calls_(carrier, alternate_stack) {}

GuestThread* GuestThread::Current() { return current_thread; }

void GuestThread::SetCurrent(GuestThread* thread) { current_thread = thread; }

void GuestThread::StartDetached(const kvm_regs& context) {
  context_ = context;
  detached_ = true;
}

GuestCodeCache* GuestThread::code_cache() {
  Tracking* const tracking = is_vfork_child ? nullptr : process_->tracking();
  return tracking != nullptr ? tracking->code_cache() : nullptr;
}

int GuestThread::Run() {
  GuestThread* const outer = current_thread;
  current_thread = this;
  agent::ThreadPage& page = carrier_->thread_page();
  page.logical_thread = logical_number_;
  page.tid = static_cast<std::uint64_t>(syscall(SYS_gettid));
  page.epoch = page.clock = 0;
  page.counters = {};
  StartFutexes(*carrier_, process_->machine().host());
  if (starts_process) ForgetFutexWaiters(*carrier_);
  const CountedThread counted(*carrier_, is_vfork_child ? 0 : 1);
  Tracking* const tracking = is_vfork_child ? nullptr : process_->tracking();
  if (tracking != nullptr) {
    if (starts_process) {
      tracking->OnStart(*carrier_, static_cast<pid_t>(page.tid));
      if (process_->options().tracking.from_start) tracking->StartAlone(*carrier_);
    } else {
      tracking->OnThreadRuns(*carrier_, static_cast<pid_t>(page.tid));
    }
  }
  carrier_->StartThread();
  if (tracking != nullptr) process_->address_space().Inherit(*carrier_);
  // What a statically linked program's runtime is called for would go unseen natively.
  if (tracking != nullptr && code_cache() != nullptr &&
      process_->address_space().policy() != SharingPolicy::kExact &&
      tracking->static_runtime() == nullptr) {
    adaptive_.emplace(process_->machine().host().exit_nanoseconds, carrier_->generation);
  }
  if (tracking != nullptr) StartTracked();
  // The carrier's last thread may have left another one.
  view_ = View::kOpen;
  EnterView(tracking != nullptr && tracking->active() ? View::kClosed : View::kWhole);
  SetHostMask(mask_);
  while (!exit_requested_) {
    const bool goes_native = PrefersNative();
    // A signal waits until the instruction that is let through is through.
    if (step_) {
      carrier_->vcpu().run().immediate_exit = 0;
    } else if ((signal_pending_ || goes_native ||
                (tracking != nullptr && view_ != View::kWhole && tracking->alone())) &&
               !AtProgramBoundary()) {
      if (signal_pending_ || goes_native) RequestLeave();
    } else {
      if (leaving_) FinishLeave();
      if (signal_pending_) DeliverPendingSignals();
      if (goes_native && !OwesAccess()) GoNative();
      if (tracking != nullptr && view_ != View::kWhole && tracking->TryQuiet(*carrier_)) {
        if (code_cache() != nullptr && code_cache()->Contains(InterruptedAt())) Detach();
        EnterView(View::kWhole);
        runtime_calls_.Clear();
      }
    }
    unsigned cpu = 0, node = 0;
    getcpu(&cpu, &node);
    carrier_->PublishCpu(cpu, node);
    if (carrier_->partial)
      carrier_->SetInPartialCode(code_cache()->CoverageOf(InterruptedAt()) == Coverage::kPartial);
    if (detached_) Resume();
    MayBeRedirected();
    const int error = carrier_->vcpu().Run();
    FollowRedirect();
    if (error == 0) {
      const bool native = adaptive_ && carrier_->native();
      if (native) adaptive_->BeginExit(ProcessorTime());
      HandleExit();
      DropOutdatedCode();
      if (native) {
        const std::uint64_t now = ProcessorTime();
        adaptive_->EndExit(now);
        NoteNativeEntry(now);
      }
    } else if (error == EINTR || error == EAGAIN) {
      HandleInterruption();
    } else if (error == EFAULT) {
      HandleMemoryError();
    } else {
      Abort(fmt::format("KVM_RUN failed: {}", std::strerror(error)));
    }
  }
  // From here on nothing is delivered to this thread any more.
  SetHostMask(kAllSignals);
  if (GuestCodeCache* const cache = code_cache()) cache->Leave(GuestCodeCache::ThreadOf(*carrier_));
  current_thread = outer;
  return exit_status_;
}

long GuestThread::Interruptible(long number, const std::uint64_t arguments[6]) {
  Tracking* const tracking = is_vfork_child ? nullptr : process_->tracking();
  IdleDrain* const drain =
      tracking != nullptr && tracking->active() ? &tracking->idle_drain() : nullptr;
  if (drain != nullptr) drain->OnWait();
  const long result = trapline_interruptible_syscall(number, arguments, &signal_pending_);
  if (drain != nullptr) drain->OnWaitEnds();
  return result;
}

// At exits that are not in the agent's search for repeats.
void GuestThread::GrowRepeatTable() {
  if (Tracking* const tracking = is_vfork_child ? nullptr : process_->tracking())
    tracking->GrowRepeatTable(*carrier_);
}

void GuestThread::HandleExit() {
  Vcpu& vcpu = carrier_->vcpu();
  const kvm_run& run = vcpu.run();
  const bool shut_down =
      run.exit_reason == KVM_EXIT_SHUTDOWN && process_->machine().host().faults_shut_down;
  const bool exception =
      shut_down || (run.exit_reason == KVM_EXIT_IO && run.io.port == TRAPLINE_PORT_EXCEPTION);
  if (exception && AbandonRedirect(true)) return;
  if (shut_down) {
    DeliverPageFault();
    place_ = Place::kException;
    exception_vector_ = kVectorPageFault;
    GrowRepeatTable();
    HandleException(kVectorPageFault);
    return;
  }
  if (run.exit_reason == KVM_EXIT_IO) {
    const std::uint64_t rip = vcpu.registers().rip;
    if (run.io.port == TRAPLINE_PORT_SYSTEM_CALL &&
        (IsAt(rip, trapline_agent_syscall_ring3) || IsAt(rip, trapline_agent_syscall_ring0))) {
      place_ = Place::kSystemCall;
      GrowRepeatTable();
      HandleSystemCall();
      return;
    }
    if (run.io.port == TRAPLINE_PORT_EXCEPTION) {
      if (const auto slot = SlotOf(rip)) {
        place_ = Place::kException;
        exception_vector_ = *slot;
        GrowRepeatTable();
        HandleException(*slot);
        return;
      }
    }
    if (run.io.port == TRAPLINE_PORT_CACHE && code_cache() != nullptr) {
      if (code_cache()->IsExit(rip)) {
        place_ = Place::kProgram;
        HandleCacheExit();
        return;
      }
      if (code_cache()->IsLeave(rip)) {
        place_ = Place::kProgram;
        ReturnToRegion();
        return;
      }
    }
    if (run.io.port == TRAPLINE_PORT_CACHE_CALL && IsAt(rip, trapline_agent_cache_many)) {
      place_ = Place::kProgram;
      HandleCacheCall();
      return;
    }
    if (run.io.port == TRAPLINE_PORT_QUEUE_FULL &&
        (IsAt(rip, trapline_agent_event_full) || IsAt(rip, trapline_agent_cache_full) ||
         rip - TRAPLINE_AGENT_REPEATS < agent::RepeatsSize())) {
      place_ = Place::kProgram;
      if (Tracking* const tracking = process_->tracking()) tracking->MakeRoom(*carrier_);
      if (IsAt(rip, trapline_agent_cache_full)) GrowRepeatTable();
      return;
    }
    if (run.io.port == TRAPLINE_PORT_QUEUE_FULL && IsAt(rip, trapline_agent_event_fiber)) {
      place_ = Place::kProgram;
      StartFibers();
      return;
    }
    if (run.io.port == TRAPLINE_PORT_ACCESS && IsAt(rip, trapline_agent_access_out)) {
      place_ = Place::kProgram;
      HandleRuntimeAccess(Registers());
      return;
    }
    if (!agent::Contains(rip)) {
      HandlePortAccess();
      return;
    }
  }
  ++counters().other_exits;
  switch (run.exit_reason) {
    case KVM_EXIT_INTR:
      HandleInterruption();
      return;
    case KVM_EXIT_SHUTDOWN:
      Abort("the guest shut down (triple fault)");
    default:
      Abort(fmt::format("unexpected exit {} from the guest", run.exit_reason));
  }
}

// Translated code in which plain loads and stores are not yet what they have turned out to be, or
// what has become hot is still checked.
void GuestThread::DropOutdatedCode() {
  if (GuestCodeCache* const cache = code_cache(); cache != nullptr) {
    process_->tracking()->DropNewlyAtomicCode();
    if (carrier_->partial) cache->UpdatePartial();
  }
}

void GuestThread::HandleInterruption() {
  Vcpu& vcpu = carrier_->vcpu();
  ++counters().interruptions;
  vcpu.run().immediate_exit = 0;
  place_ = Place::kProgram;
  if (AbandonRedirect(false)) return;
  if (IsResuming()) {
    Detach();  // it may be on its way into the code cache, and not want to be there any more
    return;
  }
  const std::uint64_t rip = vcpu.registers().rip;
  if (IsInFutexAnswer(rip)) {
    FinishFutexAnswer(*carrier_);
    return;
  }
  // Something of the agent's that is about to exit: let it, or its event would be lost.
  const auto slot = SlotOf(rip);
  const bool before_exit =
      (slot && rip == agent::EntryOf(*slot)) ||
      (rip >= agent::GuestAddressOf(trapline_agent_syscall_cached) &&
       rip < agent::GuestAddressOf(trapline_agent_futex_answer) &&
       rip != agent::GuestAddressOf(trapline_agent_syscall_ring3) + agent::kOutLength) ||
      rip == agent::GuestAddressOf(trapline_agent_syscall_ring0);
  if (!before_exit) return;
  if (IsInFutexCall(rip)) LeaveFutexCall(*carrier_, vcpu.registers());
  RunToExit();
}

// The agent is about to exit, and does.
void GuestThread::RunToExit() {
  Vcpu& vcpu = carrier_->vcpu();
  agent::FutexState& futex = carrier_->thread_page().futex;
  const std::uint32_t answers = std::exchange(futex.answers, 0);
  int error = 0;
  do {
    vcpu.run().immediate_exit = 0;
    error = vcpu.Run();
  } while (error == EINTR || error == EAGAIN);
  futex.answers = answers;
  if (error != 0) Abort(fmt::format("KVM_RUN failed: {}", std::strerror(error)));
  HandleExit();
}

// KVM could not get at the host page behind a present entry: a mapped file that shrank, or a
// protection that changed between the walk and the access. The entry goes, the access faults again,
// and that fault knows its address.
void GuestThread::HandleMemoryError() {
  const kvm_run& run = carrier_->vcpu().run();
  ++counters().other_exits;
  place_ = Place::kProgram;
  if (AbandonRedirect(true)) return;
  const std::uint64_t rip = carrier_->vcpu().registers().rip;
  if (IsInFutexCall(rip)) {
    LeaveFutexCall(*carrier_, carrier_->vcpu().registers());
    RunToExit();
    return;
  }
  if (rip != memory_error_rip_) repeated_memory_errors_ = 0;
  memory_error_rip_ = rip;
  constexpr unsigned kHopeless = 10000;
  if (++repeated_memory_errors_ > kHopeless) {
    Abort(fmt::format("KVM cannot show the program the memory it uses at {:#x} (a device's?)",
                      last_fault_address_));
  }
  std::optional<GuestPhysical> physical;
#ifdef KVM_EXIT_MEMORY_FAULT
  constexpr std::uint32_t kMemoryFault = KVM_EXIT_MEMORY_FAULT;
#else
  constexpr std::uint32_t kMemoryFault = 39;
#endif
  if (run.exit_reason == kMemoryFault) {
    // struct { __u64 flags, gpa, size } in Linux 6.8 and later; Debian 12's header lacks the name.
    std::uint64_t fields[3];
    std::memcpy(fields, &run.io, sizeof fields);
    physical = GuestPhysical{fields[1]};
  }
  process_->address_space().Distrust(*carrier_, physical);
}

void GuestThread::HandleSystemCall() {
  ++counters().system_calls;
  carrier_->lease_end = 0;
  repeated_memory_errors_ = 0;
  kvm_regs& registers = carrier_->vcpu().registers();
  const std::uint64_t trap_flag = registers.r11 & kFlagTrap;
  system_call_number_ = static_cast<long>(registers.rax);
  restart_system_call_ = false;
  const SystemCall call{
      static_cast<long>(registers.rax),
      {registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9}};
  if (GuestCodeCache* const cache = code_cache();
      cache != nullptr && cache->Contains(registers.rcx))
    cache_pause_ = cache->BeginPause(GuestCodeCache::ThreadOf(*carrier_), registers.rcx);
  ReportBeforeSystemCall(*this, call);
  const SystemCallResult result = DispatchSystemCall(*this, call);
  if (GuestCodeCache* const cache = code_cache(); cache != nullptr) {
    if (const auto changed = process_->address_space().TakeChangedCode(); !changed.empty())
      cache->Invalidate(changed);
  }
  if (result.context_replaced) return;  // rt_sigreturn: context_ is what continues
  if (result.value == kRestart) {
    restart_system_call_ = true;
    if (!signal_pending_) Abort("a system call was interrupted without a signal");
    return;  // DeliverPendingSignals comes next
  }
  ReportAfterSystemCall(*this, call, result.value);
  if (detached_) {
    context_.rax = static_cast<std::uint64_t>(result.value);
  } else {
    carrier_->vcpu().registers().rax = static_cast<std::uint64_t>(result.value);
    carrier_->vcpu().MarkRegistersDirty();
    if (trap_flag != 0) Detach();  // the ring-3 entry cannot return with the trap flag set
  }
  EndCachePause();
}

// The program's only thread has made a user-level thread.
void GuestThread::StartFibers() {
  Tracking* const tracking = process_->tracking();
  if (tracking == nullptr) return;
  tracking->Drain();
  if (!tracking->WantsStart() || is_vfork_child) return;
  Detach();
  tracking->StartAlone(*carrier_);
  EnterView(View::kClosed);
  StartTracked();
}

// The runtime's wrapper says what its caller is about to do: trapline_agent_interface::access.
void GuestThread::HandleRuntimeAccess(RegisterFile registers) {
  Tracking* const tracking = process_->tracking();
  if (tracking == nullptr) return;
  const std::uint64_t* const gpr = registers.gpr;
  // As it will be when the entry has returned: that is where frames can be found from.
  std::uint64_t return_address = 0;
  if (!ReadGuest(gpr[kRsp], return_address)) return;
  registers.rip = return_address;
  registers.gpr[kRsp] += sizeof return_address;
  tracking->CheckRuntime(*carrier_, gpr[kRdi], gpr[kRsi], gpr[kRdx], gpr[kRcx], registers);
}

// A breakpoint: false if it is the program's own.
bool GuestThread::HandleClientRequest() {
  Tracking* const tracking = process_->tracking();
  const std::uint64_t rip = carrier_->InterruptFrameOf(false).rip;
  if (tracking == nullptr || !IsClientRequest(rip)) return false;
  if (is_vfork_child) return true;
  client_requests_.Handle(Registers().gpr[kRax],
                          [&](std::uint64_t kind, std::uint64_t address, std::uint64_t size) {
                            tracking->OnRuntimeEvent(*carrier_, kind, address, size, rip);
                          });
  return true;
}

void GuestThread::Abort(const std::string& what) {
  const kvm_regs& registers = carrier_->vcpu().registers();
  process_->Fatal(fmt::format("{} (thread {}, rip {:#x}, rsp {:#x})", what,
                              carrier_->thread_page().tid, registers.rip, registers.rsp));
}

}  // namespace trapline
