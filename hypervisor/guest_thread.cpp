#include "hypervisor/guest_thread.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "hypervisor/address_space.h"
#include "hypervisor/agent_code.h"
#include "hypervisor/clock.h"
#include "hypervisor/futexes.h"
#include "hypervisor/guest_copy.h"
#include "hypervisor/page_leases.h"
#include "hypervisor/proc_files.h"
#include "hypervisor/process.h"
#include "hypervisor/processor_exceptions.h"
#include "hypervisor/string_instructions.h"
#include "hypervisor/system_call_effects.h"
#include "hypervisor/system_calls.h"
#include "hypervisor/tracking.h"
#include "hypervisor/vcpu_registers.h"

namespace trapline {
namespace {

thread_local GuestThread* current_thread = nullptr;

constexpr std::uint64_t kSyscallLength = 2;

// More than a single instruction has, each of which is counted.
constexpr std::int64_t kMostAccesses = 4;

// Reads or writes the base of GS: rdgsbase, wrgsbase, a load of GS.
bool UsesGsBase(const Instruction& in) {
  if (in.encoding != Encoding::kLegacy) return false;
  const unsigned reg = in.modrm >> 3 & 7;
  if (in.map == kMap0F && in.opcode == 0xae)
    return in.mandatory == 0xf3 && !in.modrm_is_memory() && (reg == 1 || reg == 3);
  if (in.map == kMap0F && (in.opcode == 0xa9 || in.opcode == 0xb5)) return true;
  return in.map == kMapOneByte && in.opcode == 0x8e && reg == 5;
}

// The instruction at `rip`, of the program, the code cache or the agent, if it is no longer than
// that.
std::optional<Instruction> InstructionAt(std::uint64_t rip, std::size_t longest) {
  std::array<std::uint8_t, kMaximumInstructionLength> bytes{};
  std::size_t length = longest;
  if (agent::Contains(rip)) {
    length = std::min<std::size_t>(length, TRAPLINE_AGENT_CODE + agent::BlobSize() - rip);
    std::memcpy(bytes.data(), trapline_agent_begin + (rip - TRAPLINE_AGENT_CODE), length);
  } else if (!ReadGuest(rip, bytes.data(), length)) {
    length = kPageSize - rip % kPageSize;
    if (length >= longest || !ReadGuest(rip, bytes.data(), length)) return std::nullopt;
  }
  return Decode({bytes.data(), length}, rip);
}

// Whether the instruction, about to run on `vcpu`, writes at `address`.
bool Writes(const Instruction& instruction, Vcpu& vcpu, std::uint64_t address) {
  RegisterFile file = ToRegisterFile(vcpu.registers());
  file.fs_base = vcpu.special_registers().fs.base;
  file.gs_base = vcpu.special_registers().gs.base;
  const MemoryAccessList accesses = Accesses(instruction, file);
  const bool writes = std::any_of(accesses.begin(), accesses.end(), [&](const auto& access) {
    return access.write && address - access.address < access.size;
  });
  if (writes || accesses.complete()) return writes;
  const auto operands = instruction.memory();
  return std::any_of(operands.begin(), operands.end(),
                     [](const MemoryOperand& operand) { return operand.writes; });
}

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

void GuestThread::SetFsBase(std::uint64_t base) {
  carrier_->vcpu().special_registers().fs.base = base;
  if (code_cache() != nullptr) GuestCodeCache::ThreadOf(*carrier_).fs_base = base;
  MarkSegmentsDirty();
}

// With a code cache the GS base is the way to the mirror while tracked code runs.
void GuestThread::SetGsBase(std::uint64_t base) {
  if (code_cache() != nullptr) GuestCodeCache::ThreadOf(*carrier_).gs_base = base;
  if (code_cache() != nullptr && view_ == View::kClosed) {
    gs_base_ = base;
    return;
  }
  carrier_->vcpu().special_registers().gs.base = base;
  MarkSegmentsDirty();
}

std::uint64_t GuestThread::gs_base() {
  return code_cache() != nullptr && view_ == View::kClosed
             ? gs_base_
             : carrier_->vcpu().special_registers().gs.base;
}

GuestCodeCache* GuestThread::code_cache() {
  Tracking* const tracking = is_vfork_child ? nullptr : process_->tracking();
  return tracking != nullptr ? tracking->code_cache() : nullptr;
}

void GuestThread::MarkSegmentsDirty() {
  Vcpu& vcpu = carrier_->vcpu();
  // kvm_amd reports the TSS as busy (type 11) whatever it was set to.
  vcpu.special_registers().tr.type = static_cast<std::uint8_t>(process_->machine().host().tss_type);
  vcpu.MarkSpecialRegistersDirty();
}

bool GuestThread::RecordSignal(int signal, const siginfo_t& info) {
  if (!signal_actions().HasHandler(signal)) return false;
  recorded_signal_ = signal;
  recorded_info_ = info;
  signal_pending_ = 1;
  carrier_->vcpu().run().immediate_exit = 1;
  return true;
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
  Tracking* const tracking = is_vfork_child ? nullptr : process_->tracking();
  if (tracking != nullptr) {
    if (starts_process) {
      tracking->OnStart(*carrier_, static_cast<pid_t>(page.tid));
      if (process_->options().tracking.from_start) tracking->StartAlone(*carrier_);
    } else {
      tracking->OnThreadRuns(*carrier_, static_cast<pid_t>(page.tid));
    }
  }
  // What a statically linked program's runtime is called for would go unseen natively.
  if (tracking != nullptr && code_cache() != nullptr &&
      process_->address_space().policy() != SharingPolicy::kExact &&
      tracking->static_runtime() == nullptr) {
    adaptive_.emplace(process_->machine().host().exit_nanoseconds);
  }
  carrier_->StartThread();
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
    if (detached_) Resume();
    const int error = carrier_->vcpu().Run();
    if (error == 0) {
      const bool native = adaptive_ && carrier_->native();
      if (native) adaptive_->BeginExit(ProcessorTime());
      HandleExit();
      DropOutdatedCode();
      if (native) adaptive_->EndExit(ProcessorTime());
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

// --- entering

void GuestThread::Resume() {
  Vcpu& vcpu = carrier_->vcpu();
  auto& frame = carrier_->thread_page().resume;
  frame.rdi = context_.rdi;
  frame.rdx = context_.rdx;
  frame.rax = context_.rax;
  frame.interrupt = {context_.rip, TRAPLINE_USER_CS, context_.rflags | 0x202, context_.rsp,
                     TRAPLINE_USER_SS};
  vcpu.registers() = context_;
  BeginVectorEntry(trapline_agent_resume_vector);
  detached_ = false;
  place_ = Place::kProgram;
}

void GuestThread::BeginVectorEntry(const char* entry) {
  Vcpu& vcpu = carrier_->vcpu();
  kvm_regs& registers = vcpu.registers();
  registers.rip = agent::GuestAddressOf(entry);
  registers.rsp = TRAPLINE_THREAD_PAGE + offsetof(agent::ThreadPage, resume);
  registers.rdi = TRAPLINE_VECTOR_STATE;
  const std::uint64_t mask = process_->machine().vector_mask();
  registers.rax = mask & 0xffffffff;
  registers.rdx = mask >> 32;
  registers.rflags = 0x202;
  vcpu.MarkRegistersDirty();
}

void GuestThread::SaveVectorState() {
  Vcpu& vcpu = carrier_->vcpu();
  const auto start = [&] {
    vcpu.registers() = {};
    BeginVectorEntry(trapline_agent_save_vector);
  };
  // KVM may still hold a page fault of the code that was interrupted, and delivers it to what runs
  // next. That code goes on at the instruction that has faulted, and faults again.
  const auto is_old_fault = [&] {
    if (vcpu.run().exit_reason == KVM_EXIT_SHUTDOWN)
      return process_->machine().host().faults_shut_down;
    return vcpu.run().exit_reason == KVM_EXIT_IO && vcpu.run().io.port == TRAPLINE_PORT_EXCEPTION &&
           SlotOf(vcpu.registers().rip) == kVectorPageFault;
  };
  start();
  // The header of the image must be clean for xsave to describe all components.
  std::memset(carrier_->vector_state() + 512, 0, 64);
  for (bool again = false;;) {
    vcpu.run().immediate_exit = 0;
    const int error = vcpu.Run();
    if (error == EINTR || error == EAGAIN) continue;
    if (error == 0) {
      if (vcpu.run().exit_reason == KVM_EXIT_IO &&
          vcpu.run().io.port == TRAPLINE_PORT_VECTOR_SAVED) {
        return;
      }
      if (!again && is_old_fault()) {
        again = true;
        start();
        continue;
      }
    }
    Abort(fmt::format("saving the vector state failed ({})",
                      error == 0 ? "unexpected exit" : std::strerror(error)));
  }
}

// The registers the program has at its present instruction boundary, from the vCPU's.
kvm_regs GuestThread::ProgramRegisters() {
  kvm_regs registers = RegistersAtExit();
  if (GuestCodeCache* const cache = code_cache(); cache != nullptr && !detached_) {
    if (cache_pause_) {
      registers.rip = registers.rcx = cache_pause_->rip;
    } else if (cache->Contains(registers.rip)) {
      const auto program =
          cache->Recover(ToRegisterFile(registers), GuestCodeCache::ThreadOf(*carrier_));
      if (!program) Abort("the thread is in the middle of the code cache's own work");
      registers = FromRegisterFile(*program);
      // The agent's entry runs from the cache, too.
      if (RestartsEvent(registers.rip)) registers.rip = agent::GuestAddressOf(trapline_agent_event);
    }
  }
  if (place_ == Place::kSystemCall && restart_system_call_) {
    registers.rip -= kSyscallLength;
    registers.rax = static_cast<std::uint64_t>(system_call_number_);
  }
  return registers;
}

// The vCPU's registers, those of the interrupted code where an entry of the agent has them.
kvm_regs GuestThread::RegistersAtExit() {
  kvm_regs registers = carrier_->vcpu().registers();
  const auto from_frame = [&](const agent::InterruptFrame& frame) {
    registers.rip = frame.rip;
    registers.rsp = frame.rsp;
    registers.rflags = frame.rflags;
  };
  if (place_ == Place::kException) {
    from_frame(carrier_->InterruptFrameOf(exception_vector_ == kVectorPageFault));
  } else if (place_ == Place::kSystemCall) {
    registers.rip = registers.rcx;
    registers.rflags = registers.r11;
  } else if (agent::Contains(registers.rip)) {
    if (const auto slot = SlotOf(registers.rip)) {
      from_frame(carrier_->InterruptFrameOf(*slot == kVectorPageFault));
    } else if (IsAt(registers.rip, trapline_agent_syscall_ring3) ||
               IsAt(registers.rip, trapline_agent_syscall_ring0)) {
      registers.rip = registers.rcx;
      registers.rflags = registers.r11;
    } else if (IsAt(registers.rip, trapline_agent_access_out)) {
      registers.rip = agent::GuestAddressOf(trapline_agent_access_out) + agent::kOutLength;
    } else if (RestartsEvent(registers.rip)) {
      registers.rip = agent::GuestAddressOf(trapline_agent_event);
    } else if (registers.rip < agent::GuestAddressOf(trapline_agent_event) ||
               registers.rip >= agent::GuestAddressOf(trapline_agent_interface_table)) {
      // Inside a resume entry: context_ is what it is about to restore.
      registers = context_;
    }
  }
  return registers;
}

void GuestThread::Detach() {
  if (detached_) return;
  const std::uint64_t rip = carrier_->vcpu().registers().rip;
  const bool restoring = place_ == Place::kProgram && agent::Contains(rip) && !SlotOf(rip) &&
                         rip >= agent::GuestAddressOf(trapline_agent_resume_vector) &&
                         rip <= agent::GuestAddressOf(trapline_agent_resume);
  context_ = ProgramRegisters();
  if (GuestCodeCache* const cache = code_cache(); cache != nullptr && !cache_pause_)
    cache->Leave(GuestCodeCache::ThreadOf(*carrier_));
  cache_pause_.reset();
  restart_system_call_ = false;
  if (!restoring) SaveVectorState();  // else the image is still what it restores from
  detached_ = true;
  place_ = Place::kProgram;
}

// --- leaving

void GuestThread::HandleExit() {
  Vcpu& vcpu = carrier_->vcpu();
  const kvm_run& run = vcpu.run();
  if (run.exit_reason == KVM_EXIT_SHUTDOWN && process_->machine().host().faults_shut_down) {
    DeliverPageFault();
    place_ = Place::kException;
    exception_vector_ = kVectorPageFault;
    HandleException(kVectorPageFault);
    return;
  }
  if (run.exit_reason == KVM_EXIT_IO) {
    const std::uint64_t rip = vcpu.registers().rip;
    if (run.io.port == TRAPLINE_PORT_SYSTEM_CALL &&
        (IsAt(rip, trapline_agent_syscall_ring3) || IsAt(rip, trapline_agent_syscall_ring0))) {
      place_ = Place::kSystemCall;
      HandleSystemCall();
      return;
    }
    if (run.io.port == TRAPLINE_PORT_EXCEPTION) {
      if (const auto slot = SlotOf(rip)) {
        place_ = Place::kException;
        exception_vector_ = *slot;
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

// A page fault without a gate (HostKind::faults_shut_down): leaves all as a gate would have, the
// slot's way out behind it.
void GuestThread::DeliverPageFault() {
  Vcpu& vcpu = carrier_->vcpu();
  kvm_regs& registers = vcpu.registers();
  const std::uint64_t address = vcpu.special_registers().cr2;
  std::uint64_t error_code = kUser;
  if (process_->address_space().IsMapped(*carrier_, view_, {address})) error_code |= kPresent;
  // Up to the page that could not be fetched, if it was that.
  const std::size_t fetched =
      std::min<std::size_t>(address - registers.rip, kMaximumInstructionLength);
  const auto instruction = InstructionAt(registers.rip, fetched);
  // One that is not known may write if to let it read was not enough.
  const bool again = address == last_fault_address_ && registers.rip == last_fault_rip_;
  if (fetched == 0 || (!instruction && fetched < kMaximumInstructionLength)) {
    error_code |= kFetch;
  } else if (instruction ? Writes(*instruction, vcpu, address) : again) {
    error_code |= kWrite;
  }
  agent::InterruptFrame& frame = carrier_->InterruptFrameOf(true);
  frame = {registers.rip, vcpu.special_registers().cs.selector, registers.rflags, registers.rsp,
           vcpu.special_registers().ss.selector};
  std::memcpy(reinterpret_cast<char*>(&frame) - sizeof error_code, &error_code, sizeof error_code);
  registers.rip = agent::GuestAddressOf(trapline_agent_exceptions) +
                  std::uint64_t{kVectorPageFault} * TRAPLINE_SLOT_SIZE + agent::kOutLength;
  registers.rsp = TRAPLINE_FAULT_STACK_TOP - sizeof frame - sizeof error_code;
  registers.rflags &= ~kFlagTrap;
  vcpu.MarkRegistersDirty();
}

// Translated code in which plain loads and stores are not yet what they have turned out to be.
void GuestThread::DropOutdatedCode() {
  if (GuestCodeCache* const cache = code_cache(); cache != nullptr) {
    if (const auto outdated = process_->tracking()->TakeNewlyAtomicCode(); !outdated.empty())
      cache->Invalidate(outdated);
  }
}

// The program's own access to one of the agent's ports: natively a general protection fault on the
// instruction.
void GuestThread::HandlePortAccess() {
  Vcpu& vcpu = carrier_->vcpu();
  const std::uint16_t port = vcpu.run().io.port;
  ++counters().exceptions;
  place_ = Place::kProgram;
  // Let KVM finish the instruction (an `in` writes RAX at the next entry); then RIP is past it on
  // every host.
  const kvm_regs before = vcpu.registers();
  vcpu.run().immediate_exit = 1;
  vcpu.Run();
  vcpu.run().immediate_exit = signal_pending_;
  const std::uint64_t rip = vcpu.registers().rip;
  Detach();
  context_ = before;
  context_.rip = rip;
  unsigned char code[3] = {};  // what lies before RIP, nearest last
  ReadGuest(rip - sizeof code, code, sizeof code);
  const auto immediate = [&](unsigned at) {
    return code[at] >= 0xe4 && code[at] <= 0xe7 && code[at + 1] == port;
  };
  const auto by_register = [&](unsigned at) {
    return (code[at] >= 0xec && code[at] <= 0xef) || (code[at] >= 0x6c && code[at] <= 0x6f);
  };
  if (immediate(1)) {
    context_.rip -= code[0] == 0x66 ? 3 : 2;
  } else if (by_register(2)) {
    context_.rip -= code[1] == 0x66 ? 2 : 1;
  }
  ForceException(kVectorProtection, 0);
}

void GuestThread::HandleInterruption() {
  Vcpu& vcpu = carrier_->vcpu();
  ++counters().interruptions;
  vcpu.run().immediate_exit = 0;
  place_ = Place::kProgram;
  const std::uint64_t rip = vcpu.registers().rip;
  if (IsInFutexAnswer(rip)) {
    FinishFutexAnswer(*carrier_);
    return;
  }
  // Something of the agent's that is about to exit: let it, or its event would be lost.
  const auto slot = SlotOf(rip);
  const bool before_exit =
      (slot &&
       rip == agent::GuestAddressOf(trapline_agent_exceptions) + *slot * TRAPLINE_SLOT_SIZE) ||
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

// Back to the code cache from a system call, if the code that made it is still there.
void GuestThread::EndCachePause() {
  if (!cache_pause_) return;
  if (code_cache()->EndPause(GuestCodeCache::ThreadOf(*carrier_), *cache_pause_)) {
    cache_pause_.reset();
  } else {
    Detach();
  }
}

void GuestThread::HandleException(unsigned vector) {
  const agent::InterruptFrame& frame = carrier_->InterruptFrameOf(vector == kVectorPageFault);
  std::uint64_t error_code = 0;
  if (PushesErrorCode(vector))
    std::memcpy(&error_code, reinterpret_cast<const char*>(&frame) - 8, 8);
  if (vector == kVectorPageFault) {
    HandlePageFault(error_code);
    return;
  }
  ++counters().exceptions;
  if (vector == kVectorBreakpoint && !step_ && HandleClientRequest()) return;
  if (step_) {
    if (vector == kVectorDebug) {
      FinishStep();
      return;
    }
    CancelStep();
  }
  if (leaving_ && vector == kVectorDebug) return;  // Run looks whether it is far enough
  if (vector == kVectorDebug && agent::Contains(frame.rip)) {
    // The program single-steps a SYSCALL on a host where it stays in ring 3: the trap comes inside
    // the entry. The system call's exit puts the flag back (HandleSystemCall).
    carrier_->InterruptFrameOf(false).rflags &= ~kFlagTrap;
    return;
  }
  if (agent::Contains(frame.rip) && frame.rip >= agent::GuestAddressOf(trapline_agent_resume)) {
    // iretq itself faulted: the context to be restored is impossible (a handler changed it). Vector
    // state is in.
    const kvm_regs& registers = carrier_->vcpu().registers();
    kvm_regs program = context_;
    program.rax = registers.rax;
    context_ = program;
    detached_ = true;
    place_ = Place::kProgram;
  } else {
    const bool may_be_mirror = (vector == kVectorStack || vector == kVectorProtection) &&
                               code_cache() != nullptr && code_cache()->Contains(frame.rip);
    if (may_be_mirror && HandleImpossibleAccess()) return;
    Detach();
  }
  ForceException(vector, error_code);
}

// An instruction in the code cache faulted, at no address of the mirror: perhaps its address is
// none that a program can have, and what is added for the mirror made another one of it. True: so
// it was, and the signal that it gets natively is sent.
bool GuestThread::HandleImpossibleAccess() {
  Tracking* tracking = process_->tracking();
  if (tracking == nullptr) return false;
  const auto instruction = tracking->DecodeAt(Registers().rip);
  if (!instruction) return false;
  Detach();
  RegisterFile registers = Registers();
  registers.xsave = reinterpret_cast<const unsigned char*>(carrier_->vector_state());
  for (const MemoryAccess& access : Accesses(*instruction, registers)) {
    const std::uint64_t address = access.address;
    if (address < kUserAddressEnd && access.size <= kUserAddressEnd - address) continue;
    tracking->Retract(*carrier_, registers.rip);
    const bool canonical = address + (1ull << 47) < 1ull << 48;
    if (!canonical) {
      ForceException(kVectorProtection, 0);
      return true;
    }
    SignalDelivery delivery;
    delivery.trap_number = kVectorPageFault;
    delivery.error_code = access.write ? 7 : 5;
    delivery.fault_address = std::max(address, kUserAddressEnd);
    delivery.signal = SIGSEGV;
    delivery.info.si_signo = SIGSEGV;
    delivery.info.si_code = SEGV_MAPERR;
    delivery.info.si_addr = reinterpret_cast<void*>(delivery.fault_address);
    ForceSignal(delivery);
    return true;
  }
  return false;
}

namespace {

// Kernels can be told to leave it out (vsyscall=none).
bool HostHasVsyscallPage() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with("[vsyscall]")) return true;
  }
  return false;
}

}  // namespace

// The page at a fixed kernel address that very old static programs call for the time; Linux
// emulates it just so.
bool GuestThread::EmulateVsyscall(std::uint64_t address) {
  long number = 0;
  switch (address) {
    case 0xffffffffff600000:
      number = SYS_gettimeofday;
      break;
    case 0xffffffffff600400:
      number = SYS_time;
      break;
    case 0xffffffffff600800:
      number = SYS_getcpu;
      break;
    default:
      return false;
  }
  if (!HostHasVsyscallPage()) return false;
  Detach();
  std::uint64_t return_address = 0;
  if (!ReadGuest(context_.rsp, return_address)) return false;
  context_.rax = static_cast<std::uint64_t>(Interruptible(number, context_.rdi, context_.rsi));
  context_.rip = return_address;
  context_.rsp += sizeof return_address;
  return true;
}

void GuestThread::HandlePageFault(std::uint64_t error_code) {
  ++counters().page_faults;
  const std::uint64_t address = carrier_->vcpu().special_registers().cr2;
  const std::uint64_t rip = carrier_->InterruptFrameOf(true).rip;
  if (IsInFutexCall(rip)) {
    // The word is not in view: the kernel looks.
    LeaveFutexCall(*carrier_, carrier_->InterruptFrameOf(true));
    carrier_->thread_page().futex.skip = TRAPLINE_FUTEX_MOST_SKIPPED;
    RunToExit();
    return;
  }
  // KVM may hold a translation it made before a right was given; seeing the same fault over and
  // over means it never looks again.
  if (address == last_fault_address_ && rip == last_fault_rip_) {
    if (++repeated_faults_ > 1000000)
      Abort(fmt::format("page fault at {:#x} does not go away", address));
  } else {
    last_fault_address_ = address;
    last_fault_rip_ = rip;
    repeated_faults_ = 0;
  }
  if (address == rip && (error_code & kFetch) != 0 && EmulateVsyscall(address)) return;
  const bool cached = code_cache() != nullptr && code_cache()->Contains(rip);
  if (cached && address - kMirrorOffset >= kUserAddressEnd && HandleImpossibleAccess()) return;
  if (adaptive_) {
    AwaitLease(process_->address_space(), *carrier_,
               address >= kMirrorOffset ? address - kMirrorOffset : address);
  }
  FaultVerdict verdict = FaultVerdict::kNotMapped;
  std::uint64_t fault_address = address;
  try {
    const bool write = (error_code & kWrite) != 0;
    if (cached) {
      verdict = ResolveCached(fault_address, write);
    } else {
      // The program's own gs: operand, natively: the cache knows its base.
      if (address >= kMirrorOffset && view_ == View::kClosed && EnterCache()) return;
      verdict = process_->address_space().Resolve(*carrier_, view_, {address}, write,
                                                  (error_code & kFetch) != 0, rip);
    }
    switch (verdict) {
      case FaultVerdict::kMapped:
        return;
      case FaultVerdict::kUntrackedCode:
      case FaultVerdict::kTrackedCode:
        NoteViewChange(verdict == FaultVerdict::kTrackedCode);
        if (EnterCache()) return;
        process_->tracking()->CountViewChange();
        EnterView(verdict == FaultVerdict::kTrackedCode ? View::kClosed : View::kOpen);
        return;
      case FaultVerdict::kShared:
        if (EnterCache()) return;
        // Code that the cache refuses (a JIT's) counts as hot.
        if (adaptive_ && !carrier_->native() && !step_ && !detached_) {
          GoNative();
          return;
        }
        StartStep(false, address, write);
        return;
      default:
        break;
    }
  } catch (const std::exception& error) {
    Abort(error.what());
  }
  if (step_) CancelStep();
  Detach();
  SignalDelivery delivery;
  delivery.trap_number = kVectorPageFault;
  // Natively the program is told that it was user mode, and not what lies at a kernel address.
  delivery.error_code = (error_code | 4) & 0x17;
  if (fault_address >= kUserAddressEnd) {
    delivery.error_code |= 1;
  } else if (verdict == FaultVerdict::kNotMapped) {
    delivery.error_code &= ~1ull;
  } else if (verdict == FaultVerdict::kNotPermitted && view_ == View::kClosed) {
    // Natively the page is present, unless nothing at all is permitted.
    const auto region = process_->address_space().Find(fault_address);
    if (region && region->protection != PROT_NONE) delivery.error_code |= 1;
  }
  delivery.fault_address = fault_address;
  switch (verdict) {
    case FaultVerdict::kNotPermitted:
      delivery.signal = SIGSEGV;
      delivery.info.si_code = SEGV_ACCERR;
      break;
    case FaultVerdict::kBusError:
      delivery.signal = SIGBUS;
      delivery.info.si_code = BUS_ADRERR;
      break;
    case FaultVerdict::kMemoryFailure:
      delivery.signal = SIGBUS;
      delivery.info.si_code = BUS_MCEERR_AR;
      break;
    default:
      delivery.signal = SIGSEGV;
      delivery.info.si_code = SEGV_MAPERR;
  }
  delivery.info.si_signo = delivery.signal;
  delivery.info.si_addr = reinterpret_cast<void*>(fault_address);
  ForceSignal(delivery);
}

void GuestThread::ForceException(unsigned vector, std::uint64_t error_code) {
  ForceSignal(DescribeException(vector, error_code, context_.rip, carrier_->vector_state()));
}

// --- the code cache

// Where the guest was when it exited: in the program, in the agent or in the code cache.
std::uint64_t GuestThread::InterruptedAt() {
  return detached_ ? context_.rip : RegistersAtExit().rip;
}

// Whether the program's registers can be told at the present exit.
bool GuestThread::AtProgramBoundary() {
  GuestCodeCache* const cache = code_cache();
  if (detached_ || cache == nullptr || cache_pause_) return true;
  const kvm_regs registers = RegistersAtExit();
  if (cache->Contains(registers.rip))
    return cache->Recover(ToRegisterFile(registers), GuestCodeCache::ThreadOf(*carrier_))
        .has_value();
  return !IsInSlowPath(registers.rip);
}

// Lets the thread run on, to the end of the slow path or else step by step, until the program's
// registers can be told.
void GuestThread::RequestLeave() {
  carrier_->vcpu().run().immediate_exit = 0;
  leaving_ = true;
  GuestCodeCache::ThreadOf(*carrier_).leave_requested = 1;
  SetTrapFlag(!IsInSlowPath(RegistersAtExit().rip));
}

void GuestThread::FinishLeave() {
  leaving_ = false;
  GuestCodeCache::ThreadOf(*carrier_).leave_requested = 0;
  SetTrapFlag(false);
}

// Whether the thread has been in the code cache for so long that native code is worth a try: where
// it meets no page that other threads use, it stays there (architecture.md, "Leaving").
bool GuestThread::PrefersNative() {
  return adaptive_ && !carrier_->native() && view_ == View::kClosed && !step_ &&
         GuestCodeCache::ThreadOf(*carrier_).leave_after <= 0;
}

// Asked once the thread may leave. True: it has told of the access for which it came, and not made
// it yet. Natively that would fail again if the page stays shared whoever uses it, for ever if one
// access is more than the thread's patience; so it stays for the whole instruction.
bool GuestThread::OwesAccess() {
  const std::uint64_t returned_at = std::exchange(returned_at_, 0);
  if (returned_at == 0 || Registers().rip != returned_at) return false;
  CacheThread& thread = GuestCodeCache::ThreadOf(*carrier_);
  thread.leave_requested = 0;
  thread.leave_after = kMostAccesses;
  return true;
}

void GuestThread::StartTracked() {
  const TrackOptions& options = process_->options().tracking;
  const SharingPolicy policy = process_->address_space().policy();
  const bool native = policy == SharingPolicy::kShared || policy == SharingPolicy::kWriteShared;
  if (native) process_->tracking()->OnNative(*carrier_);
  carrier_->SetNative(native);
  if (adaptive_)
    GuestCodeCache::ThreadOf(*carrier_).leave_after = adaptive_->Start(options.hot_after);
}

void GuestThread::GoNative() {
  if (view_ != View::kClosed) return;
  if (code_cache()->Contains(InterruptedAt())) {
    if (place_ == Place::kProgram) {
      carrier_->vcpu().registers() = ProgramRegisters();
      carrier_->vcpu().MarkRegistersDirty();
      code_cache()->Leave(GuestCodeCache::ThreadOf(*carrier_));
    } else {
      Detach();
    }
  }
  process_->address_space().OpenOwn(*carrier_);
  process_->tracking()->OnNative(*carrier_);
  carrier_->SetNative(true);
  CacheThread& thread = GuestCodeCache::ThreadOf(*carrier_);
  thread.leave_requested = 0;
  adaptive_->BeginStint(ProcessorTime(), thread.leave_after, carrier_->thread_page().repeats);
  BeginLease(*carrier_);
}

// The program, out of the guest because of an exception, goes on in the code cache. False: the
// instruction it is at cannot be run there.
bool GuestThread::EnterCache() {
  GuestCodeCache* const cache = code_cache();
  if (cache == nullptr || detached_ || place_ != Place::kException || step_) return false;
  const RegisterFile registers = Registers();
  if ((registers.rflags & kFlagTrap) != 0) return false;
  CacheThread& thread = GuestCodeCache::ThreadOf(*carrier_);
  const std::uint64_t address = cache->Enter(thread, registers.rip);
  if (address == 0) return false;
  thread.fs_base = fs_base();
  thread.gs_base = gs_base();
  if (process_->tracking()->static_runtime() != nullptr)
    runtime_calls_.InProgram(*process_->tracking(), registers.gpr[kRsp]);
  RegisterFile caller = registers;
  if (agent::Contains(registers.rip) && ReadGuest(registers.gpr[kRsp], caller.rip))
    caller.gpr[kRsp] += sizeof caller.rip;
  process_->tracking()->SetFrames(*carrier_, caller);
  EnterView(View::kClosed);
  if (adaptive_ && carrier_->native()) {
    carrier_->SetNative(false);
    counters().native_time += ProcessorTime() - adaptive_->stint_began();
    ++counters().returns;
    returned_at_ = registers.rip;
    thread.leave_after = adaptive_->EndStint(std::exchange(carrier_->rewatched, 0));
  }
  carrier_->InterruptFrameOf(exception_vector_ == kVectorPageFault).rip = address;
  return true;
}

void GuestThread::HandleCacheExit() {
  GuestCodeCache& cache = *code_cache();
  Vcpu& vcpu = carrier_->vcpu();
  CacheThread& thread = GuestCodeCache::ThreadOf(*carrier_);
  auto [target, address] = cache.Follow(thread, vcpu.registers().rip);
  if (target == agent::GuestAddressOf(trapline_agent_event_full)) {
    process_->tracking()->MakeRoom(*carrier_);
    address = cache.Enter(thread, agent::GuestAddressOf(trapline_agent_event));
  }
  vcpu.registers().rip = address != 0 ? address : target;
  vcpu.MarkRegistersDirty();
  // What the cache cannot run is stepped, or runs natively if nothing is to be checked.
  if (address == 0 && !signal_pending_) StartStep(true, 0, false);
}

// The thread has left at the end of the slow path: back to where in a region that was called.
void GuestThread::ReturnToRegion() {
  kvm_regs& registers = carrier_->vcpu().registers();
  std::memcpy(&registers.rip, carrier_->ThreadRegion(registers.rsp), sizeof registers.rip);
  registers.rsp += 16;  // the site, too
  carrier_->vcpu().MarkRegistersDirty();
}

// An instruction whose accesses only its registers tell is about to run.
void GuestThread::HandleCacheCall() {
  const kvm_regs& registers = carrier_->vcpu().registers();
  const auto& site = *reinterpret_cast<const AccessSite*>(registers.rdi);
  CacheThread& thread = GuestCodeCache::ThreadOf(*carrier_);
  RegisterFile file = thread.registers;
  if (site.report) {
    HandleRuntimeAccess(file);
    return;
  }
  file.xsave = thread.xsave;
  process_->tracking()->CheckCached(*carrier_, site, file);
}

// A page fault in the code cache: `address` becomes the program's, if it is its mirror.
FaultVerdict GuestThread::ResolveCached(std::uint64_t& address, bool write) {
  AddressSpace& space = process_->address_space();
  if (address - kMirrorOffset < kUserAddressEnd) {
    address -= kMirrorOffset;
    const std::uint64_t since = adaptive_ ? ProcessorTime() : 0;
    const FaultVerdict verdict = space.ResolveMirror(*carrier_, {address}, write);
    // Pages change hands because threads run natively.
    if (adaptive_) adaptive_->CountCacheFault(ProcessorTime() - since);
    if (Tracking* const tracking = process_->tracking();
        verdict != FaultVerdict::kMapped && tracking != nullptr) {
      tracking->Retract(*carrier_, Registers().rip);
    }
    return verdict;
  }
  // An instruction that was copied as it is. If it has to be checked, it leaves the cache for that.
  const FaultVerdict verdict =
      space.Resolve(*carrier_, View::kClosed, {address}, write, false, Registers().rip);
  if (verdict == FaultVerdict::kShared || verdict == FaultVerdict::kUntrackedCode) Detach();
  return verdict;
}

// --- tracking

void GuestThread::EnterView(View view) {
  if (view_ == view) return;
  if (code_cache() != nullptr) {
    kvm_segment& gs = carrier_->vcpu().special_registers().gs;
    if (view_ == View::kClosed) gs.base = gs_base_;
    if (view == View::kClosed) gs_base_ = std::exchange(gs.base, kMirrorOffset);
  }
  view_ = view;
  carrier_->vcpu().special_registers().cr3 =
      process_->address_space().RootOf(*carrier_, view).value;
  MarkSegmentsDirty();
}

RegisterFile GuestThread::Registers() {
  const kvm_regs registers = detached_ ? context_ : ProgramRegisters();
  RegisterFile file = ToRegisterFile(registers);
  file.fs_base = fs_base();
  file.gs_base = gs_base();
  return file;
}

// Sets or clears the program's trap flag, wherever its flags lie while it is out of the guest.
void GuestThread::SetTrapFlag(bool on) {
  const auto change = [on](auto& flags) { on ? flags |= kFlagTrap : flags &= ~kFlagTrap; };
  if (detached_) {
    change(context_.rflags);
  } else if (place_ == Place::kException) {
    change(carrier_->InterruptFrameOf(exception_vector_ == kVectorPageFault).rflags);
  } else {
    kvm_regs& registers = carrier_->vcpu().registers();
    change(registers.rflags);
    if (place_ == Place::kSystemCall) change(registers.r11);  // where SYSCALL left them
    carrier_->vcpu().MarkRegistersDirty();
  }
}

// The thread goes over to code whose accesses count, or is at the first access of code whose do
// not.
void GuestThread::NoteViewChange(bool to_tracked) {
  Tracking& tracking = *process_->tracking();
  const StaticRuntime* const runtime = tracking.static_runtime();
  if (runtime == nullptr) return;
  const RegisterFile registers = Registers();
  if (to_tracked) {
    NoteArrival(registers.rip, registers.gpr[kRsp]);
  } else if (runtime->EntryAt(registers.rip) != nullptr) {
    if (const auto instruction = tracking.DecodeAt(registers.rip))
      runtime_calls_.LetThrough(tracking, *instruction, registers);
  }
}

// A step, or a change to tracked code, brought the thread to `rip`.
void GuestThread::NoteArrival(std::uint64_t rip, std::uint64_t rsp) {
  if (runtime_calls_.empty()) return;
  runtime_calls_.Arrived(*process_->tracking(), rip, rsp, Registers().gpr[kRax]);
}

// The instruction at RIP touches a shared page (`fault_address`), or, `chained`, the thread has
// just stepped up to it and it might. Reports what it is about to do, and lets it through with one
// step. False, only if chained: it touches nothing shared.
bool GuestThread::StartStep(bool chained, std::uint64_t fault_address, bool write) {
  Tracking& tracking = *process_->tracking();
  RegisterFile registers = Registers();
  if (chained && !process_->address_space().IsTrackedCode(registers.rip)) return false;
  const auto instruction = tracking.DecodeAt(registers.rip);
  // In View::kClosed its register holds the mirror's offset.
  const bool uses_gs_base = code_cache() != nullptr && instruction && UsesGsBase(*instruction);
  if (chained && !uses_gs_base && (!instruction || instruction->memory().empty())) return false;
  Step step;
  step.rip = registers.rip;
  step.program_traps = (registers.rflags & kFlagTrap) != 0;
  const bool is_runtime =
      instruction && runtime_calls_.LetThrough(tracking, *instruction, registers);
  if (instruction) {
    if (!is_runtime && NeedsVectors(*instruction)) {
      Detach();
      registers = Registers();
      registers.xsave = reinterpret_cast<const unsigned char*>(carrier_->vector_state());
    }
    const bool checked =
        is_runtime || tracking.Check(*carrier_, *instruction, registers, step.holds_atomic_lock);
    if (chained && !checked && !uses_gs_base) return false;
    // Nothing of what it is known to do is where it faulted: its effects are not known.
    if (!checked && !uses_gs_base)
      tracking.CheckUnknown(*carrier_, fault_address, write, registers);
    if (!step.holds_atomic_lock && RepeatInMonitor(*instruction, registers.rflags)) {
      tracking.CountTrap(chained);
      return true;
    }
    const bool one_byte =
        instruction->encoding == Encoding::kLegacy && instruction->map == kMapOneByte;
    step.pushes_flags = one_byte && instruction->opcode == 0x9c;
    step.pops_flags = one_byte && instruction->opcode == 0x9d;
    step.checks_each_round =
        instruction->repeat == Repeat::kRepe || instruction->repeat == Repeat::kRepne;
  } else {
    tracking.CheckUnknown(*carrier_, fault_address, write, registers);
  }
  tracking.CountTrap(chained);
  SetTrapFlag(true);
  EnterView(View::kWhole);
  step_ = step;
  return true;
}

// A repeated store or copy, if it can be done here.
bool GuestThread::RepeatInMonitor(const Instruction& instruction, std::uint64_t flags) {
  kvm_regs& live = detached_ ? context_ : carrier_->vcpu().registers();
  if (!CarryOutRepeats(instruction, flags, live)) return false;
  if (live.rcx == 0) {
    if (detached_) {
      context_.rip += instruction.length;
    } else {
      carrier_->InterruptFrameOf(exception_vector_ == kVectorPageFault).rip += instruction.length;
    }
  }
  if (!detached_) carrier_->vcpu().MarkRegistersDirty();
  return true;
}

// The trap after the step: the next instruction is checked at once if it touches shared pages too,
// for then the thread need not fault to get here again.
void GuestThread::FinishStep() {
  const Step step = *step_;
  agent::InterruptFrame& frame = carrier_->InterruptFrameOf(false);
  if (frame.rip == step.rip && !step.checks_each_round) {
    const auto instruction = process_->tracking()->DecodeAt(step.rip);
    // One round of a repeated instruction, all of which was checked before: go on.
    if (instruction && instruction->repeat != Repeat::kNone) return;
  }
  step_.reset();
  if (step.holds_atomic_lock) process_->tracking()->FinishAtomic();
  if (step.pushes_flags && !step.program_traps) {
    std::uint64_t pushed = 0;
    if (ReadGuest(frame.rsp, pushed)) WriteGuest(frame.rsp, pushed & ~kFlagTrap);
  }
  if (!step.program_traps && !step.pops_flags) frame.rflags &= ~kFlagTrap;
  if (step.program_traps) {
    EnterView(View::kClosed);
    Detach();
    ForceException(kVectorDebug, 0);
    return;
  }
  NoteArrival(frame.rip, frame.rsp);
  if (code_cache() != nullptr) {
    EnterView(View::kClosed);
    if (EnterCache() || process_->tracking()->static_runtime() == nullptr) return;
  }
  if (!signal_pending_ && StartStep(true, 0, false)) return;
  EnterView(View::kClosed);
}

// The instruction that was to be let through raised an exception instead.
void GuestThread::CancelStep() {
  const Step step = *step_;
  step_.reset();
  if (step.holds_atomic_lock) process_->tracking()->FinishAtomic();
  if (!step.program_traps) SetTrapFlag(false);
  EnterView(View::kClosed);
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

// --- signals

void GuestThread::DeliverPendingSignals() {
  while (signal_pending_) {
    SignalDelivery delivery;
    delivery.signal = recorded_signal_;
    delivery.info = recorded_info_;
    signal_pending_ = 0;
    carrier_->vcpu().run().immediate_exit = 0;
    const KernelSigaction action = signal_actions().Get(delivery.signal);
    if (action.handler > 1) {
      Detach();
      Deliver(delivery, action);
    } else {
      // The action changed between recording and now: let the kernel apply the new one.
      if (action.handler == 0) {
        syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), delivery.signal,
                &delivery.info);
      }
      if (restart_system_call_) Detach();
    }
    SetHostMask(mask_);  // may record the next one
  }
}

void GuestThread::Deliver(const SignalDelivery& delivery, const KernelSigaction& action) {
  ++counters().signals;
  repeated_memory_errors_ = 0;
  if (Tracking* const tracking = process_->tracking(); tracking != nullptr && !is_vfork_child) {
    tracking->OnEdge(*carrier_, EventKind::kHappensAfter, SignalKey(delivery.signal));
    if (delivery.info.si_code == SI_TIMER)
      tracking->OnEdge(*carrier_, EventKind::kHappensAfter, kTimerKey);
  }
  Machine& machine = process_->machine();
  if (!PushSignalFrame(context_, delivery, action, mask_, alternate_stack, carrier_->vector_state(),
                       machine.vector_state_size(), machine.vector_mask())) {
    DieOf(SIGSEGV);
    return;
  }
  InitializeVectorState(carrier_->vector_state(), machine.vector_state_size());
  SignalMask mask = mask_ | action.mask;
  if ((action.flags & SA_NODEFER) == 0) mask |= MaskOf(delivery.signal);
  set_mask(mask);
  if ((action.flags & SA_RESETHAND) != 0) {
    KernelSigaction by_default;
    signal_actions().Set(delivery.signal, by_default);
  }
}

void GuestThread::ForceSignal(const SignalDelivery& delivery) {
  SetHostMask(kAllSignals);
  const KernelSigaction action = signal_actions().Get(delivery.signal);
  if (action.handler <= 1 || (mask_ & MaskOf(delivery.signal)) != 0) {
    DieOf(delivery.signal);
    return;
  }
  Deliver(delivery, action);
  if (!signal_pending_) SetHostMask(mask_);
}

void GuestThread::DieOf(int signal) {
  process_->BeforeDeath(signal);
  signal_actions().SetHostDefault(signal);
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
  SetHostMask(~MaskOf(signal));
  // Only a signal whose default is not death, or that a debugger keeps back, gets here.
  if (TracerOfThisThread() == 0) syscall(SYS_exit_group, 128 + signal);
  signal_actions().Set(signal, {});
  set_mask(mask_ & ~MaskOf(signal));
  SetHostMask(mask_);
}

void GuestThread::Abort(const std::string& what) {
  const kvm_regs& registers = carrier_->vcpu().registers();
  process_->Fatal(fmt::format("{} (thread {}, rip {:#x}, rsp {:#x})", what,
                              carrier_->thread_page().tid, registers.rip, registers.rsp));
}

}  // namespace trapline
