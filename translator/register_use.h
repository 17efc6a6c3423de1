// Which registers and flags an instruction uses: as much of it as the translator needs, and always
// on the safe side.
#pragma once

#include <cstdint>

#include "translator/instruction.h"

namespace trapline {

// Bit i: general register i is named by the instruction's encoding (operand, address, opcode).
// Vector and mask registers count as the general register of the same number. Implicit operands are
// not in it; they are always among rax to rdi, and r11 of syscall.
std::uint16_t NamedRegisters(const Instruction& instruction);

// Bit i: the instruction may write general register i. All bits for what is not known here.
std::uint16_t MaybeWrittenRegisters(const Instruction& instruction);

// What an instruction does to the six status flags.
enum class FlagUse : std::uint8_t {
  kMayRead,    // reads one, or is not known not to
  kKeeps,      // reads none; may change some
  kOverwrites  // reads none and sets all six, whatever its operands
};
FlagUse StatusFlagUse(const Instruction& instruction);

// Whether the instruction neither reads nor changes a status flag, and does not use rax. False for
// what is not known here; true for moves, push and pop, and arithmetic in vector registers.
bool LeavesFlagsAndRax(const Instruction& instruction);

// The instruction names ah, ch, dh or bh, so that it must not get a REX prefix.
bool NamesHighByte(const Instruction& instruction);

}  // namespace trapline
