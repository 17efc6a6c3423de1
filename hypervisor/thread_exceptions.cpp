// What a guest thread does about the exceptions of its program, page faults above all.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "hypervisor/address_space.h"
#include "hypervisor/agent_code.h"
#include "hypervisor/futexes.h"
#include "hypervisor/guest_copy.h"
#include "hypervisor/guest_thread.h"
#include "hypervisor/host_mappings.h"
#include "hypervisor/page_leases.h"
#include "hypervisor/process.h"
#include "hypervisor/processor_exceptions.h"
#include "hypervisor/tracking.h"
#include "hypervisor/vcpu_registers.h"

namespace trapline {
namespace {

// The instruction at `rip`, of the program, the code cache or the agent, if it is no longer than
// that.
std::optional<Instruction> InstructionAt(std::uint64_t rip, std::size_t longest, bool cached) {
  std::array<std::uint8_t, kMaximumInstructionLength> bytes{};
  std::size_t length = longest;
  if (agent::Contains(rip)) {
    length = std::min<std::size_t>(length, TRAPLINE_AGENT_CODE + agent::BlobSize() - rip);
    std::memcpy(bytes.data(), trapline_agent_begin + (rip - TRAPLINE_AGENT_CODE), length);
  } else if (cached) {
    // The monitor's own memory, which goes on behind the code.
    std::memcpy(bytes.data(), reinterpret_cast<const void*>(rip), length);
  } else if (!ReadGuest(rip, bytes.data(), length)) {
    length = kPageSize - rip % kPageSize;
    if (length >= longest || !ReadGuest(rip, bytes.data(), length)) return std::nullopt;
  }
  return Decode({bytes.data(), length}, rip);
}

// Whether the instruction, about to run with these registers, writes at `address`.
bool Writes(const Instruction& instruction, const RegisterFile& registers, std::uint64_t address) {
  const MemoryAccessList accesses = Accesses(instruction, registers);
  const bool writes = std::any_of(accesses.begin(), accesses.end(), [&](const auto& access) {
    return access.write && address - access.address < access.size;
  });
  if (writes || accesses.complete()) return writes;
  const auto operands = instruction.memory();
  return std::any_of(operands.begin(), operands.end(),
                     [](const MemoryOperand& operand) { return operand.writes; });
}

// Whether the processor has such instructions; `components`: of its state that XCR0 enables.
bool HasEncoding(Encoding encoding, std::uint64_t components) {
  constexpr std::uint64_t kAvx = 0x4, kAvx512 = 0xe0;
  const std::uint64_t needed = encoding == Encoding::kVex    ? kAvx
                               : encoding == Encoding::kEvex ? kAvx512
                                                             : 0;
  return (components & needed) == needed;
}

// Kernels can be told to leave it out (vsyscall=none).
bool HostHasVsyscallPage() {
  std::ifstream maps("/proc/thread-self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with("[vsyscall]")) return true;
  }
  return false;
}

}  // namespace

// The one that the vCPU is at, if it is no longer than that. `again`: it has faulted just before.
std::optional<Instruction> GuestThread::FaultingInstruction(std::size_t longest, bool again) {
  const std::uint64_t rip = carrier_->vcpu().registers().rip;
  const bool cached = code_cache() != nullptr && code_cache()->Contains(rip);
  if (cached || again || agent::Contains(rip)) return InstructionAt(rip, longest, cached);
  AddressSpace& space = process_->address_space();
  const std::uint64_t version = space.code_version();
  if (const Instruction* const known = recent_instructions_.Find(rip, version);
      known != nullptr && known->length <= longest) {
    return *known;
  }
  const auto region = space.Find(rip);
  const auto instruction = InstructionAt(rip, longest, false);
  if (instruction && region && region->ReadOnlyCode()) {
    recent_instructions_.Add(rip, version, *instruction);
  }
  return instruction;
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
  // One that is not known may write if to let it read was not enough.
  const bool again = address == last_fault_address_ && registers.rip == last_fault_rip_;
  const auto instruction = FaultingInstruction(fetched, again);
  if (fetched == 0 || (!instruction && fetched < kMaximumInstructionLength)) {
    error_code |= kFetch;
  } else {
    RegisterFile file = ToRegisterFile(registers);
    file.fs_base = vcpu.special_registers().fs.base;
    file.gs_base = vcpu.special_registers().gs.base;
    if (instruction ? Writes(*instruction, file, address) : again) error_code |= kWrite;
  }
  agent::InterruptFrame& frame = carrier_->InterruptFrameOf(true);
  frame = {registers.rip, vcpu.special_registers().cs.selector, registers.rflags, registers.rsp,
           vcpu.special_registers().ss.selector};
  std::memcpy(reinterpret_cast<char*>(&frame) - sizeof error_code, &error_code, sizeof error_code);
  registers.rip = agent::EntryOf(kVectorPageFault) + agent::kOutLength;
  registers.rsp = TRAPLINE_FAULT_STACK_TOP - sizeof frame - sizeof error_code;
  registers.rflags &= ~kFlagTrap;
  vcpu.MarkRegistersDirty();
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
    // Where pages are shadowed KVM emulates what the processor has refused, and calls invalid what
    // its emulator does not know.
    const bool may_be_refused =
        vector == kVectorInvalidOpcode && !process_->machine().host().syscall_arrives_in_ring0;
    if ((may_be_mirror || may_be_refused) && HandleImpossibleAccess()) return;
    Detach();
  }
  ForceException(vector, error_code);
}

// Whether it is known what the program's present instruction does to memory.
bool GuestThread::KnowsEffects() {
  const auto instruction = process_->tracking()->DecodeAt(Registers().rip);
  return instruction && instruction->effects_known;
}

// Whether a page fault at `rip`, out of the code cache, is for a gs: operand of the program's own:
// GS base is the mirror's offset, natively, too, and the program's is known in the cache.
bool GuestThread::IsByMirrorsBase(std::uint64_t address, std::uint64_t rip) const {
  if (address >= kMirrorOffset) return true;
  if (address < kLowMirrorStart || address >= kLowMirrorEnd) return false;
  const auto instruction = InstructionAt(rip, kMaximumInstructionLength, false);
  if (!instruction) return false;
  const auto operands = instruction->memory();
  return std::any_of(operands.begin(), operands.end(),
                     [](const MemoryOperand& operand) { return operand.segment == Segment::kGs; });
}

// Whether the program's present instruction may touch the program's `address`.
bool GuestThread::Touches(std::uint64_t address) {
  if (address >= kUserAddressEnd) return false;
  const RegisterFile registers = Registers();
  // It may be the agent's, which looks at pages for the preload library.
  const auto instruction = InstructionAt(registers.rip, kMaximumInstructionLength, false);
  if (!instruction) return true;
  const MemoryAccessList accesses = Accesses(*instruction, registers);
  return !accesses.complete() ||
         std::any_of(accesses.begin(), accesses.end(),
                     [&](const auto& access) { return address - access.address < access.size; });
}

// An instruction faulted: perhaps its address is none that a program can have, and what is added
// for the mirror in the code cache made another one of it, or it is one that the processor refuses,
// and KVM could not tell. True: so it was, and the signal that it gets natively is sent.
bool GuestThread::HandleImpossibleAccess() {
  const bool cached = code_cache() != nullptr && code_cache()->Contains(InterruptedAt());
  const auto instruction = InstructionAt(Registers().rip, kMaximumInstructionLength, false);
  if (!instruction || instruction->memory().empty() ||
      !HasEncoding(instruction->encoding, process_->machine().vector_mask())) {
    return false;
  }
  Detach();
  RegisterFile registers = Registers();
  registers.xsave = reinterpret_cast<const unsigned char*>(carrier_->vector_state());
  if (const Refusal refusal = RefusalOf(*instruction, registers); refusal != Refusal::kNone) {
    if (cached) process_->tracking()->Retract(*carrier_, registers.rip);
    ForceException(refusal == Refusal::kStack ? kVectorStack : kVectorProtection, 0);
    return true;
  }
  if (!cached) return false;
  for (const MemoryAccess& access : Accesses(*instruction, registers)) {
    const std::uint64_t address = access.address;
    if (address < kUserAddressEnd && access.size <= kUserAddressEnd - address) continue;
    process_->tracking()->Retract(*carrier_, registers.rip);
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
  LeaveAtOnceIfSignalled();
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
  if (GuestCodeCache* const cache = code_cache()) cache->CountPageFault();
  const std::uint64_t address = carrier_->vcpu().special_registers().cr2;
  const std::uint64_t rip = carrier_->InterruptFrameOf(true).rip;
  // The gate's own, perhaps. If it is the program's it comes again.
  if (std::exchange(may_hold_fault_, false) && rip == carrier_->thread_page().redirect.rip) return;
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
  if (address == rip && (error_code & kFetch) != 0) {
    if (EmulateVsyscall(address)) return;
    // kvm_pvm takes any fault at the instruction's own address for one of fetching it.
    const auto instruction =
        repeated_faults_ != 0 ? InstructionAt(rip, kMaximumInstructionLength, false) : std::nullopt;
    if (instruction && Writes(*instruction, Registers(), address))
      error_code = (error_code & ~kFetch) | kWrite;
  }
  const bool cached = code_cache() != nullptr && code_cache()->Contains(rip);
  if (cached && address - kMirrorOffset >= kUserAddressEnd && !TouchesUnmirrored(address, rip) &&
      HandleImpossibleAccess()) {
    return;
  }
  if (adaptive_) {
    AwaitLease(process_->address_space(), *carrier_,
               address >= kMirrorOffset ? address - kMirrorOffset : address);
  }
  FaultVerdict verdict = FaultVerdict::kNotMapped;
  std::uint64_t fault_address = address;
  try {
    const bool write = (error_code & kWrite) != 0;
    if (cached) {
      verdict = ResolveCached(fault_address, write, rip);
    } else {
      if (view_ == View::kClosed && IsByMirrorsBase(address, rip) && EnterCache()) return;
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
        // Code that the cache refuses (a JIT's) counts as hot, but for single instructions whose
        // effects are not known.
        if (adaptive_ && !carrier_->native() && !step_ && !detached_ && KnowsEffects()) {
          GoNative();
          return;
        }
        StartStep(false, (error_code & kFetch) != 0 ? 0 : address, write);
        return;
      case FaultVerdict::kNoMirror:
        Detach();
        if (process_->address_space().IsTrackedCode(Registers().rip)) {
          StartStep(false, 0, write);
        } else {
          EnterView(View::kOpen);
        }
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
  delivery.error_code = (error_code | kUser) & (kPresent | kWrite | kUser | kFetch);
  if (fault_address >= kUserAddressEnd) {
    delivery.error_code |= kPresent;
  } else if (verdict == FaultVerdict::kNotMapped) {
    delivery.error_code &= ~kPresent;
  } else if (verdict == FaultVerdict::kNotPermitted) {
    // Natively the page is present if it is in memory, unless nothing at all is permitted.
    const auto region = process_->address_space().Find(fault_address);
    if (region && region->protection != PROT_NONE && IsInMemory(fault_address))
      delivery.error_code |= kPresent;
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

}  // namespace trapline
