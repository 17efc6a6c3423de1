// Instructions that are let through one at a time, with all pages in view.
#include <cstdint>

#include "hypervisor/address_space.h"
#include "hypervisor/guest_copy.h"
#include "hypervisor/guest_thread.h"
#include "hypervisor/process.h"
#include "hypervisor/processor_exceptions.h"
#include "hypervisor/string_instructions.h"
#include "hypervisor/tracking.h"
#include "hypervisor/vcpu_registers.h"
#include "hypervisor/virtual_tables.h"

namespace trapline {
namespace {

// clflush, clflushopt, clwb: they need a line in view, and do nothing to what is in it.
bool FlushesCacheLine(const Instruction& in) {
  if (in.encoding != Encoding::kLegacy || in.map != kMap0F || in.opcode != 0xae) return false;
  const unsigned reg = in.modrm >> 3 & 7;
  return in.modrm_is_memory() &&
         (in.mandatory == 0x66 ? reg == 6 || reg == 7 : in.mandatory == 0 && reg == 7);
}

// Reads or writes the base of GS: rdgsbase, wrgsbase, a load of GS.
bool UsesGsBase(const Instruction& in) {
  if (in.encoding != Encoding::kLegacy) return false;
  const unsigned reg = in.modrm >> 3 & 7;
  if (in.map == kMap0F && in.opcode == 0xae)
    return in.mandatory == 0xf3 && !in.modrm_is_memory() && (reg == 1 || reg == 3);
  if (in.map == kMap0F && (in.opcode == 0xa9 || in.opcode == 0xb5)) return true;
  return in.map == kMapOneByte && in.opcode == 0x8e && reg == 5;
}

}  // namespace

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

// The instruction at RIP touches a shared page (`fault_address`), or one that has no mirror (0),
// or, `chained`, the thread has just stepped up to it and it might. Reports what it is about to do,
// and lets it through with one step. False, only if chained: it touches nothing shared.
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
    if (!is_runtime &&
        (NeedsVectors(*instruction) || StoresVectorOverTables(*instruction, registers))) {
      Detach();
      registers = Registers();
      registers.xsave = reinterpret_cast<const unsigned char*>(carrier_->vector_state());
    }
    const bool checked =
        is_runtime || tracking.Check(*carrier_, *instruction, registers, step.holds_atomic_lock);
    if (chained && !checked && !uses_gs_base) return false;
    // Nothing of what it is known to do is where it faulted: its effects are not known.
    if (!checked && fault_address != 0 && !FlushesCacheLine(*instruction))
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
  } else if (fault_address != 0) {
    tracking.CheckUnknown(*carrier_, fault_address, write, registers);
  }
  // That many take some seconds.
  constexpr std::uint64_t kManyTraps = 1 << 15;
  if (tracking.CountTrap(chained) % kManyTraps == kManyTraps - 1) WarnOfWritableCode(step.rip);
  SetTrapFlag(true);
  EnterView(View::kWhole);
  step_ = step;
  return true;
}

// Many instructions have been let through one by one, the one at `rip` among them.
void GuestThread::WarnOfWritableCode(std::uint64_t rip) {
  if (code_cache() == nullptr) return;
  const auto region = process_->address_space().Find(rip);
  if (!region || !region->IsTrackedCode() || region->ReadOnlyCode()) return;
  process_->Warn(
      "warning: the program runs code that can be written while it can be executed, as a "
      "just-in-time compiler's: where that shares memory it is run instruction by instruction, "
      "which is slow. If the compiler can be switched off, try that");
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
  last_fault_rip_ = 0;  // it may step on the same access again and again
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
  // One that the monitor repeats itself is no step: it goes on with what comes behind.
  while (!signal_pending_ && StartStep(true, 0, false)) {
    if (step_) return;
  }
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

}  // namespace trapline
