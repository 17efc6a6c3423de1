// The vCPU's registers as the translator has them.
#pragma once

#include <cstdint>

#include "hypervisor/kvm.h"
#include "translator/memory_access.h"

namespace trapline {

inline constexpr std::uint64_t kFlagTrap = 0x100, kFlagInterrupt = 0x200;  // of RFLAGS

// General registers, RIP and RFLAGS; what kvm_regs lacks is left as it is by default.
RegisterFile ToRegisterFile(const kvm_regs& registers);
kvm_regs FromRegisterFile(const RegisterFile& file);

}  // namespace trapline
