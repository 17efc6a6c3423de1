#include "translator/emitter.h"

#include <cassert>
#include <cstring>

namespace trapline {
namespace {

constexpr std::uint8_t kRexW = 0x48;

std::uint8_t Rex(std::uint8_t reg, std::uint8_t index, std::uint8_t base) {
  return static_cast<std::uint8_t>(kRexW | (reg & 8) >> 1 | (index & 8) >> 2 | (base & 8) >> 3);
}

std::uint8_t Modrm(unsigned mod, std::uint8_t reg, std::uint8_t rm) {
  return static_cast<std::uint8_t>(mod << 6 | (reg & 7) << 3 | (rm & 7));
}

bool FitsInSigned32(std::uint64_t value) {
  return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(value)}) == value;
}

}  // namespace

void Emitter::Absolute(std::uint8_t opcode, std::uint8_t reg, std::uint64_t address) {
  assert(address < 0x80000000);
  Bytes({Rex(reg, 0, 0), opcode, Modrm(0, reg, 4), 0x25});
  Imm32(address);
}

void Emitter::StoreVector(std::uint8_t reg, std::uint64_t address) {
  assert(address < 0x80000000);
  if (reg >= 8) Bytes({0x44});
  Bytes({0x0f, 0x11, Modrm(0, reg, 4), 0x25});  // movups
  Imm32(address);
}

void Emitter::StoreAbsoluteImm(std::uint64_t address, std::uint32_t value) {
  Bytes({kRexW, 0xc7, 0x04, 0x25});
  Imm32(address);
  Imm32(value);
}

void Emitter::PushAbsolute(std::uint64_t address) {
  Bytes({0xff, 0x34, 0x25});
  Imm32(address);
}

void Emitter::PopAbsolute(std::uint64_t address) {
  Bytes({0x8f, 0x04, 0x25});
  Imm32(address);
}

void Emitter::MoveImm(std::uint8_t reg, std::uint64_t value) {
  if (value <= 0xffffffff) {
    if (reg >= 8) Bytes({0x41});
    Bytes({static_cast<std::uint8_t>(0xb8 | (reg & 7))});
    Imm32(value);
  } else if (FitsInSigned32(value)) {
    Bytes({Rex(0, 0, reg), 0xc7, Modrm(3, 0, reg)});
    Imm32(value);
  } else {
    Bytes({Rex(0, 0, reg), static_cast<std::uint8_t>(0xb8 | (reg & 7))});
    Imm64(value);
  }
}

void Emitter::Move(std::uint8_t to, std::uint8_t from) {
  Bytes({Rex(from, 0, to), 0x89, Modrm(3, from, to)});
}

void Emitter::WithBase(std::uint8_t opcode, std::uint8_t reg, std::uint8_t base,
                       std::int32_t displacement, bool gs) {
  MemoryOperand operand;
  operand.base = base;
  operand.displacement = displacement;
  WithOperand(opcode, reg, operand, gs);
}

void Emitter::LeaSum(std::uint8_t reg, std::uint8_t base, std::uint8_t index,
                     std::int32_t displacement) {
  MemoryOperand operand;
  operand.base = base;
  operand.index = index;
  operand.displacement = displacement;
  LeaOperand(reg, operand);
}

void Emitter::Lea16(std::uint8_t reg, std::uint8_t base, std::int8_t displacement) {
  Bytes({0x66, static_cast<std::uint8_t>(Rex(reg, 0, base) & ~8), 0x8d, Modrm(1, reg, base),
         static_cast<std::uint8_t>(displacement)});
}

void Emitter::Not(std::uint8_t reg) { Bytes({Rex(0, 0, reg), 0xf7, Modrm(3, 2, reg)}); }

void Emitter::And32(std::uint8_t to, std::uint8_t from) {
  Bytes({static_cast<std::uint8_t>(Rex(from, 0, to) & ~8), 0x21, Modrm(3, from, to)});
}

void Emitter::WithOperand(std::uint8_t opcode, std::uint8_t reg, const MemoryOperand& operand,
                          bool gs) {
  const bool no_base = operand.base == kNoRegister;
  const std::uint8_t base = no_base ? 5 : operand.base;
  const std::uint8_t index = operand.index == kNoRegister ? 4 : operand.index;
  const std::int64_t displacement = operand.displacement;
  // The shortest of the encodings (SDM 2.1.5): without displacement (rbp and r13 need one), or with
  // one of 8 bits. A SIB byte stands for rsp and r12, too.
  const bool byte = displacement >= -128 && displacement < 128;
  const unsigned mod = no_base || (displacement == 0 && (base & 7) != 5) ? 0 : byte ? 1 : 2;
  const bool sib = no_base || index != 4 || (base & 7) == 4;
  if (gs) Bytes({0x65});
  if (operand.address_is_32_bits) Bytes({0x67});
  Bytes({Rex(reg, index, base), opcode, Modrm(mod, reg, sib ? 4 : base)});
  if (sib) {
    std::uint8_t scale = 0;
    while (1 << scale < operand.scale) ++scale;
    Bytes({static_cast<std::uint8_t>(scale << 6 | (index & 7) << 3 | (base & 7))});
  }
  if (mod == 1) {
    Bytes({static_cast<std::uint8_t>(displacement)});
  } else if (mod == 2 || no_base) {
    Imm32(static_cast<std::uint64_t>(displacement));
  }
}

void Emitter::Push(std::uint8_t reg) {
  if (reg >= 8) Bytes({0x41});
  Bytes({static_cast<std::uint8_t>(0x50 | (reg & 7))});
}

void Emitter::Pop(std::uint8_t reg) {
  if (reg >= 8) Bytes({0x41});
  Bytes({static_cast<std::uint8_t>(0x58 | (reg & 7))});
}

std::uint32_t Emitter::Jump() {
  Bytes({0xe9, 0, 0, 0, 0});
  return offset() - 4;
}

std::uint32_t Emitter::JumpIf(std::uint8_t condition) {
  Bytes({0x0f, static_cast<std::uint8_t>(0x80 | condition), 0, 0, 0, 0});
  return offset() - 4;
}

std::uint32_t Emitter::Call() {
  Bytes({0xe8, 0, 0, 0, 0});
  return offset() - 4;
}

void Emitter::SetDisplacement(std::uint32_t at, std::uint64_t target) {
  const auto displacement = static_cast<std::uint32_t>(target - (address_ + at + 4));
  std::memcpy(memory_.data() + at, &displacement, 4);
}

void Emitter::JumpThroughAbsolute(std::uint64_t address) {
  Bytes({0xff, 0x24, 0x25});
  Imm32(address);
}

void Emitter::AlignAhead(unsigned ahead) {
  switch ((here() + ahead) % 4) {
    case 1:
      Bytes({0x0f, 0x1f, 0x00});
      break;
    case 2:
      Bytes({0x66, 0x90});
      break;
    case 3:
      Bytes({0x90});
      break;
    default:
      break;
  }
}

}  // namespace trapline
