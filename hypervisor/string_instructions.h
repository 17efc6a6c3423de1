// String instructions that the monitor carries out itself.
#pragma once

#include <cstdint>

#include "hypervisor/kvm.h"
#include "translator/instruction.h"

namespace trapline {

// Repeated stores and copies (REP STOS, REP MOVS), which would trap once for each element: done
// here, if all of the memory is there. Up to 1 MiB at once; RCX says how many elements are left,
// and if it is 0 the program goes on behind the instruction. `flags`: the program's RFLAGS. False:
// not such an instruction, or one that has to be done an element at a time; the registers are as
// they were, the memory may have been written in part.
bool CarryOutRepeats(const Instruction& instruction, std::uint64_t flags, kvm_regs& registers);

}  // namespace trapline
