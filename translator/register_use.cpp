#include "translator/register_use.h"

namespace trapline {
namespace {

// Which of the ModRM registers (without ModRM: the opcode's) are bytes.
struct ByteRegisters {
  bool reg = false;
  bool rm = false;
};

ByteRegisters BytesOf(const Instruction& instruction) {
  const std::uint8_t opcode = instruction.opcode;
  if (instruction.encoding != Encoding::kLegacy) return {};
  if (instruction.map == kMapOneByte) {
    if (opcode < 0x40) return {(opcode & 1) == 0, (opcode & 1) == 0};
    switch (opcode) {
      case 0x84:
      case 0x86:
      case 0x88:
      case 0x8a:
        return {true, true};
      case 0x80:
      case 0xc0:
      case 0xc6:
      case 0xd0:
      case 0xd2:
      case 0xf6:
      case 0xfe:
        return {false, true};
      default:
        return {opcode >= 0xb0 && opcode <= 0xb7, false};
    }
  }
  if (instruction.map == kMap0F) {
    if (opcode == 0xb0 || opcode == 0xc0) return {true, true};
    return {false, (opcode >= 0x90 && opcode <= 0x9f) || opcode == 0xb6 || opcode == 0xbe};
  }
  return {false, instruction.map == kMap0F38 && opcode == 0xf0};  // crc32
}

// Without REX 4 to 7 are ah, ch, dh, bh: parts of registers 0 to 3.
std::uint8_t WholeRegister(const Instruction& instruction, std::uint8_t number, bool is_byte) {
  return is_byte && instruction.rex == 0 && number >= 4 && number < 8 ? number - 4 : number;
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
    case 0xb8:
      return FlagUse::kOverwrites;  // cmpxchg, xadd, popcnt
    default:
      return FlagUse::kMayRead;
  }
}

constexpr std::uint16_t kAllRegisters = 0xffff;

unsigned Bit(unsigned reg) { return 1u << reg; }

// ModRM.reg, and ModRM.rm if it is a register.
unsigned RegBit(const Instruction& in) { return Bit(WholeRegister(in, in.reg(), BytesOf(in).reg)); }
unsigned RmBit(const Instruction& in) {
  return in.modrm_is_memory() ? 0 : Bit(WholeRegister(in, in.rm(), BytesOf(in).rm));
}

unsigned WrittenByOneByte(const Instruction& in) {
  const std::uint8_t opcode = in.opcode;
  const unsigned extension = in.modrm >> 3 & 7;
  const std::uint8_t opcode_register = in.opcode_reg();
  if (opcode < 0x40) {
    if (opcode >= 0x38) return 0;  // cmp
    switch (opcode & 7) {
      case 0:
      case 1:
        return RmBit(in);
      case 2:
      case 3:
        return RegBit(in);
      default:
        return Bit(kRax);
    }
  }
  if (opcode >= 0x50 && opcode <= 0x57) return Bit(kRsp);
  if (opcode >= 0x58 && opcode <= 0x5f) return Bit(kRsp) | Bit(opcode_register);
  if (opcode >= 0x90 && opcode <= 0x97) return Bit(kRax) | Bit(opcode_register);
  if (opcode >= 0xb0 && opcode <= 0xb7) {
    return Bit(WholeRegister(in, opcode_register, true));
  }
  if (opcode >= 0xb8 && opcode <= 0xbf) return Bit(opcode_register);
  switch (opcode) {
    case 0x63:
    case 0x69:
    case 0x6b:
    case 0x8a:
    case 0x8b:
    case 0x8d:
      return RegBit(in);
    case 0x68:
    case 0x6a:
      return Bit(kRsp);
    case 0x80:
    case 0x81:
    case 0x83:
      return extension == 7 ? 0 : RmBit(in);
    case 0x84:
    case 0x85:
    case 0xa8:
    case 0xa9:
      return 0;
    case 0x86:
    case 0x87:
      return RegBit(in) | RmBit(in);
    case 0x88:
    case 0x89:
    case 0xc0:
    case 0xc1:
    case 0xc6:
    case 0xc7:
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
      return RmBit(in);
    case 0x98:
    case 0x99:
      return Bit(kRax) | Bit(kRdx);
    case 0xf6:
    case 0xf7:
      return extension <= 1 ? 0 : extension <= 3 ? RmBit(in) : Bit(kRax) | Bit(kRdx);
    case 0xfe:
      return RmBit(in);
    case 0xff:
      return extension <= 1 ? RmBit(in) : kAllRegisters;
    default:
      return kAllRegisters;
  }
}

unsigned WrittenByTwoByte(const Instruction& in) {
  const std::uint8_t opcode = in.opcode;
  switch (opcode) {
    case 0x2c:
    case 0x2d:
    case 0x50:
    case 0xc5:
    case 0xd7:
      return RegBit(in);
    case 0x7e:
      return RmBit(in);
    case 0x78:
    case 0x79:
      return in.encoding == Encoding::kEvex ? RegBit(in) : kAllRegisters;
    default:
      break;
  }
  if ((opcode >= 0x10 && opcode <= 0x17) || (opcode >= 0x28 && opcode <= 0x2f)) return 0;
  if (opcode >= 0x51 && opcode <= 0x7f) return 0;
  if (opcode == 0xc2 || opcode == 0xc4 || opcode == 0xc6 || opcode >= 0xd0) return 0;
  if (in.encoding != Encoding::kLegacy) return kAllRegisters;
  if (opcode >= 0x18 && opcode <= 0x1f) return 0;
  if (opcode >= 0x40 && opcode <= 0x4f) return RegBit(in);
  if (opcode >= 0x90 && opcode <= 0x9f) return RmBit(in);
  if (opcode >= 0xc8 && opcode <= 0xcf) return Bit((opcode & 7u) | (in.rex & 1u) << 3);
  switch (opcode) {
    case 0x0d:
    case 0xc3:
    case 0xa3:
      return 0;
    case 0x31:  // rdtsc
      return Bit(kRax) | Bit(kRdx);
    case 0xae:  // fences; with a prefix, of a register, rdfsbase and rdgsbase
      return in.modrm_is_memory() || in.repeat_prefix == 0 ? 0 : RmBit(in);
    case 0xaf:
    case 0xb6:
    case 0xb7:
    case 0xb8:
    case 0xbc:
    case 0xbd:
    case 0xbe:
    case 0xbf:
      return RegBit(in);
    case 0xa4:
    case 0xa5:
    case 0xab:
    case 0xac:
    case 0xad:
    case 0xb3:
    case 0xba:
    case 0xbb:
      return RmBit(in);
    case 0xb0:
    case 0xb1:
      return Bit(kRax) | RmBit(in);
    case 0xc0:
    case 0xc1:
      return RegBit(in) | RmBit(in);
    default:
      return kAllRegisters;
  }
}

}  // namespace

std::uint16_t MaybeWrittenRegisters(const Instruction& instruction) {
  unsigned written = kAllRegisters;
  const std::uint8_t opcode = instruction.opcode;
  const bool known_encoding =
      instruction.encoding != Encoding::kXop && instruction.encoding != Encoding::k3dNow;
  if (instruction.branch == Branch::kNone && known_encoding) {
    switch (instruction.map) {
      case kMapOneByte:
        written = WrittenByOneByte(instruction);
        break;
      case kMap0F:
        written = WrittenByTwoByte(instruction);
        break;
      case kMap0F38:
        if (opcode < 0xe0) written = 0;
        break;
      case kMap0F3A:
        if (opcode < 0x60) written = RmBit(instruction);
        break;
      default:
        break;
    }
  }
  return static_cast<std::uint16_t>(written);
}

std::uint16_t NamedRegisters(const Instruction& instruction) {
  unsigned registers = 0;
  const ByteRegisters bytes = BytesOf(instruction);
  if (instruction.has_modrm) {
    registers |= 1u << WholeRegister(instruction, instruction.reg(), bytes.reg);
    if (!instruction.modrm_is_memory()) {
      registers |= 1u << WholeRegister(instruction, instruction.rm(), bytes.rm);
    }
  } else {
    // The opcode's low bits, whether or not they name a register.
    registers |= 1u << instruction.opcode_reg();
  }
  if (instruction.encoding != Encoding::kLegacy) registers |= 1u << (instruction.vvvv & 15);
  for (const std::uint8_t reg : {instruction.base, instruction.index}) {
    if (reg < 16) registers |= Bit(reg);
  }
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

bool LeavesFlagsAndRax(const Instruction& instruction) {
  const std::uint8_t opcode = instruction.opcode;
  const bool legacy = instruction.encoding == Encoding::kLegacy;
  if (legacy && instruction.map == kMapOneByte && (opcode & 0xf0) == 0x50)  // push and pop
    return (NamedRegisters(instruction) & Bit(kRax)) == 0;
  if (instruction.branch != Branch::kNone || instruction.encoding == Encoding::kXop ||
      instruction.encoding == Encoding::k3dNow || !instruction.has_modrm ||
      instruction.base == kRax || instruction.index == kRax) {
    return false;
  }
  const bool no_rax = ((RegBit(instruction) | RmBit(instruction)) & Bit(kRax)) == 0;
  switch (instruction.map) {
    case kMapOneByte:
      return legacy && no_rax &&
             (opcode == 0x63 || (opcode >= 0x88 && opcode <= 0x8b) || opcode == 0x8d ||
              ((opcode == 0xc6 || opcode == 0xc7) && (instruction.modrm >> 3 & 7) == 0));
    case kMap0F:
      switch (opcode) {
        case 0x2a:  // conversions, moves from and to general registers
        case 0x2c:
        case 0x2d:
        case 0x50:
        case 0x6e:
        case 0x7e:
        case 0xc4:
        case 0xc5:
        case 0xd7:
          return no_rax;
        case 0xb6:  // movzx, movsx
        case 0xb7:
        case 0xbe:
        case 0xbf:
          return legacy && no_rax;
        default:
          return (opcode >= 0x10 && opcode <= 0x17) || (opcode >= 0x28 && opcode <= 0x2b) ||
                 (opcode >= 0x51 && opcode <= 0x76) || (opcode >= 0x7c && opcode <= 0x7f) ||
                 opcode == 0xc2 || opcode == 0xc6 || (opcode >= 0xd0 && opcode <= 0xf6) ||
                 (opcode >= 0xf8 && opcode <= 0xfe);
      }
    case kMap0F38:  // fused multiply and add
      return !legacy && opcode >= 0x96 && opcode <= 0xbf;
    default:
      return false;
  }
}

bool NamesHighByte(const Instruction& instruction) {
  const ByteRegisters bytes = BytesOf(instruction);
  if (instruction.rex != 0) return false;
  if (!instruction.has_modrm) return bytes.reg && (instruction.opcode & 7) >= 4;
  const bool reg = bytes.reg && instruction.reg() >= 4;
  const bool rm = bytes.rm && !instruction.modrm_is_memory() && instruction.rm() >= 4;
  return reg || rm;
}

}  // namespace trapline
