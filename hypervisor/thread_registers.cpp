// The program's registers: where they are while a thread is out of the guest, and how they get back
// into it.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "hypervisor/address_space.h"
#include "hypervisor/agent_code.h"
#include "hypervisor/guest_thread.h"
#include "hypervisor/process.h"
#include "hypervisor/processor_exceptions.h"
#include "hypervisor/tracking.h"
#include "hypervisor/vcpu_registers.h"

namespace trapline {
namespace {

constexpr std::uint64_t kSyscallLength = 2;

}  // namespace

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

void GuestThread::MarkSegmentsDirty() { process_->machine().MarkSegmentsDirty(carrier_->vcpu()); }

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

void GuestThread::Resume() {
  Vcpu& vcpu = carrier_->vcpu();
  auto& frame = carrier_->thread_page().resume;
  frame.rdi = context_.rdi;
  frame.rdx = context_.rdx;
  frame.rax = context_.rax;
  frame.interrupt = {ResumeAddress(), TRAPLINE_USER_CS, context_.rflags | 0x202, context_.rsp,
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

// After what may have swallowed the kick of a signal: the next entry is over before it begins if
// one has been recorded. One that comes now sees to that itself.
void GuestThread::LeaveAtOnceIfSignalled() {
  kvm_run& run = carrier_->vcpu().run();
  run.immediate_exit = 0;
  if (signal_pending_) run.immediate_exit = 1;
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
  carrier_->thread_page().redirect.enabled = 0;
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
        LeaveAtOnceIfSignalled();
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

// Where the guest was when it exited: in the program, in the agent or in the code cache.
std::uint64_t GuestThread::InterruptedAt() {
  return detached_ ? context_.rip : RegistersAtExit().rip;
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

// Whether the thread is out of the guest on its way back to the program, of which nothing has run.
bool GuestThread::IsResuming() {
  const std::uint64_t rip = carrier_->vcpu().registers().rip;
  return place_ == Place::kProgram && agent::Contains(rip) && !SlotOf(rip) &&
         rip >= agent::GuestAddressOf(trapline_agent_resume_vector) &&
         rip <= agent::GuestAddressOf(trapline_agent_resume);
}

void GuestThread::Detach() {
  if (detached_) return;
  const bool resuming = IsResuming();
  context_ = ProgramRegisters();
  if (GuestCodeCache* const cache = code_cache(); cache != nullptr && !cache_pause_)
    cache->Leave(GuestCodeCache::ThreadOf(*carrier_));
  cache_pause_.reset();
  restart_system_call_ = false;
  if (!resuming) SaveVectorState();  // else the image is still what it restores from
  detached_ = true;
  place_ = Place::kProgram;
}

}  // namespace trapline
