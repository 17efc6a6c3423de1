#include "hypervisor/vcpu_registers.h"

#include <iterator>

namespace trapline {
namespace {

// In the order of RegisterFile::gpr.
constexpr __u64 kvm_regs::*kGeneral[16] = {
    &kvm_regs::rax, &kvm_regs::rcx, &kvm_regs::rdx, &kvm_regs::rbx, &kvm_regs::rsp, &kvm_regs::rbp,
    &kvm_regs::rsi, &kvm_regs::rdi, &kvm_regs::r8,  &kvm_regs::r9,  &kvm_regs::r10, &kvm_regs::r11,
    &kvm_regs::r12, &kvm_regs::r13, &kvm_regs::r14, &kvm_regs::r15};

}  // namespace

RegisterFile ToRegisterFile(const kvm_regs& registers) {
  RegisterFile file;
  for (std::size_t i = 0; i < std::size(kGeneral); ++i) file.gpr[i] = registers.*kGeneral[i];
  file.rip = registers.rip;
  file.rflags = registers.rflags;
  return file;
}

kvm_regs FromRegisterFile(const RegisterFile& file) {
  kvm_regs registers{};
  for (std::size_t i = 0; i < std::size(kGeneral); ++i) registers.*kGeneral[i] = file.gpr[i];
  registers.rip = file.rip;
  registers.rflags = file.rflags;
  return registers;
}

}  // namespace trapline
