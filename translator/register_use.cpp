#include "translator/register_use.h"

namespace trapline {
namespace {

bool HasByteOperands(const Instruction& instruction) {
  const std::uint8_t opcode = instruction.opcode;
  if (instruction.map == kMapOneByte) {
    if (opcode < 0x40) return (opcode & 1) == 0;
    switch (opcode) {
      case 0x80:
      case 0x84:
      case 0x86:
      case 0x88:
      case 0x8a:
      case 0xc0:
      case 0xc6:
      case 0xd0:
      case 0xd2:
      case 0xf6:
      case 0xfe:
        return true;
      default:
        return opcode >= 0xb0 && opcode <= 0xb7;
    }
  }
  if (instruction.map == kMap0F) {
    if (opcode >= 0x90 && opcode <= 0x9f) return true;
    return opcode == 0xb0 || opcode == 0xb6 || opcode == 0xbe || opcode == 0xc0;
  }
  return instruction.map == kMap0F38 && opcode == 0xf0;  // crc32
}

FlagUse OneByteFlagUse(const Instruction& instruction) {
  const std::uint8_t opcode = instruction.opcode;
  const unsigned reg = instruction.modrm >> 3 & 7;
  const bool with_carry = reg == 2 || reg == 3;
  if (opcode < 0x40) {
    const unsigned operation = opcode >> 3;
    return operation == 2 || operation == 3 ? FlagUse::kMayRead : FlagUse::kOverwrites;
  }
  if (opcode >= 0x50 && opcode <= 0x5f) return FlagUse::kKeeps;
  if (opcode >= 0x80 && opcode <= 0x83)
    return with_carry ? FlagUse::kMayRead : FlagUse::kOverwrites;
  if (opcode >= 0x84 && opcode <= 0x85) return FlagUse::kOverwrites;
  if (opcode >= 0x86 && opcode <= 0x8b) return FlagUse::kKeeps;
  if (opcode >= 0x90 && opcode <= 0x99) return FlagUse::kKeeps;
  if (opcode >= 0xb0 && opcode <= 0xbf) return FlagUse::kKeeps;
  switch (opcode) {
    case 0x63:
    case 0x68:
    case 0x69:
    case 0x6a:
    case 0x6b:
    case 0x8d:
    case 0x8f:
    case 0xa4:
    case 0xa5:
    case 0xaa:
    case 0xab:
    case 0xac:
    case 0xad:
    case 0xc6:
    case 0xc7:
    case 0xc9:
      return FlagUse::kKeeps;
    case 0xa8:
    case 0xa9:
      return FlagUse::kOverwrites;
    case 0xc0:
    case 0xc1:
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
      return with_carry ? FlagUse::kMayRead : FlagUse::kKeeps;
    case 0xf6:
    case 0xf7:
      return reg <= 1 || reg == 3 ? FlagUse::kOverwrites : FlagUse::kKeeps;
    case 0xfe:
      return FlagUse::kKeeps;
    case 0xff:
      return reg <= 1 || reg == 6 ? FlagUse::kKeeps : FlagUse::kMayRead;
    default:
      return FlagUse::kMayRead;
  }
}

FlagUse TwoByteFlagUse(const Instruction& instruction) {
  const std::uint8_t opcode = instruction.opcode;
  const bool legacy = instruction.encoding == Encoding::kLegacy;
  if (opcode == 0x2e || opcode == 0x2f) return FlagUse::kOverwrites;  // ucomis, comis
  if (opcode >= 0x10 && opcode <= 0x17) return FlagUse::kKeeps;
  if (opcode >= 0x28 && opcode <= 0x2d) return FlagUse::kKeeps;
  if (opcode >= 0x50 && opcode <= 0x7f && opcode != 0x78 && opcode != 0x79) return FlagUse::kKeeps;
  if (opcode == 0xc2 || (opcode >= 0xc4 && opcode <= 0xc6)) return FlagUse::kKeeps;
  if (opcode >= 0xd0 && opcode != 0xff) return FlagUse::kKeeps;
  if (!legacy) return FlagUse::kMayRead;
  if (opcode >= 0x18 && opcode <= 0x1f) return FlagUse::kKeeps;
  if (opcode >= 0xc8 && opcode <= 0xcf) return FlagUse::kKeeps;
  switch (opcode) {
    case 0x0d:
    case 0xa4:
    case 0xa5:
    case 0xac:
    case 0xad:
    case 0xaf:
    case 0xb6:
    case 0xb7:
    case 0xbc:
    case 0xbd:
    case 0xbe:
    case 0xbf:
    case 0xc3:
    case 0xa3:
    case 0xab:
    case 0xb3:
    case 0xba:
    case 0xbb:
      return FlagUse::kKeeps;
    case 0xb0:
    case 0xb1:
    case 0xc0:
    case 0xc1:
      return FlagUse::kOverwrites;  // cmpxchg, xadd
    case 0xb8:
      return FlagUse::kOverwrites;  // popcnt
    default:
      return FlagUse::kMayRead;
  }
}

}  // namespace

std::uint16_t NamedRegisters(const Instruction& instruction) {
  unsigned registers = 0;
  if (instruction.has_modrm) {
    registers |= 1u << instruction.reg();
    if (!instruction.modrm_is_memory()) registers |= 1u << instruction.rm();
  } else {
    // The opcode's low bits, whether or not they name a register.
    registers |= 1u << ((instruction.opcode & 7) | (instruction.rex & 1) << 3);
  }
  if (instruction.encoding != Encoding::kLegacy) registers |= 1u << (instruction.vvvv & 15);
  for (const MemoryOperand& operand : instruction.memory()) {
    if (operand.base < 16) registers |= 1u << operand.base;
    if (operand.index < 16) registers |= 1u << operand.index;
  }
  return static_cast<std::uint16_t>(registers);
}

FlagUse StatusFlagUse(const Instruction& instruction) {
  if (instruction.branch != Branch::kNone) return FlagUse::kMayRead;
  if (instruction.encoding == Encoding::kXop || instruction.encoding == Encoding::k3dNow)
    return FlagUse::kMayRead;
  switch (instruction.map) {
    case kMapOneByte:
      return OneByteFlagUse(instruction);
    case kMap0F:
      return TwoByteFlagUse(instruction);
    case kMap0F38:
      if (instruction.opcode == 0x17) return FlagUse::kOverwrites;  // ptest
      return instruction.opcode >= 0xe0 ? FlagUse::kMayRead : FlagUse::kKeeps;
    case kMap0F3A:
      return instruction.opcode >= 0x60 && instruction.opcode <= 0x63 ? FlagUse::kMayRead
                                                                      : FlagUse::kKeeps;
    default:
      return FlagUse::kMayRead;
  }
}

bool NamesHighByte(const Instruction& instruction) {
  if (instruction.encoding != Encoding::kLegacy || instruction.rex != 0 ||
      !HasByteOperands(instruction))
    return false;
  if (!instruction.has_modrm) return (instruction.opcode & 7) >= 4;
  const bool reg = (instruction.modrm >> 3 & 7) >= 4;
  const bool rm = !instruction.modrm_is_memory() && (instruction.modrm & 7) >= 4;
  return reg || rm;
}

}  // namespace trapline
