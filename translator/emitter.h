// Machine code for the code cache, byte by byte (Intel SDM vol. 2). Only what the translator needs;
// nothing it emits touches the flags unless its name says so.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <vector>

#include "translator/instruction.h"

namespace trapline {

class Emitter {
 public:
  // `address` is where the first byte will lie: below 2 GiB.
  explicit Emitter(std::uint64_t address) : address_(address) {}

  // Begins other code, in the same memory.
  void Restart(std::uint64_t address) {
    address_ = address;
    size_ = 0;
  }

  std::span<const std::uint8_t> bytes() const { return {memory_.data(), size_}; }
  std::uint32_t offset() const { return static_cast<std::uint32_t>(size_); }
  std::uint64_t here() const { return address_ + size_; }

  void Bytes(std::initializer_list<std::uint8_t> bytes) { Append(bytes.begin(), bytes.size()); }
  void Bytes(std::span<const std::uint8_t> bytes) { Append(bytes.data(), bytes.size()); }
  void Imm32(std::uint64_t value) { Append(&value, 4); }
  void Imm64(std::uint64_t value) { Append(&value, 8); }

  // 64-bit moves between a general register and memory at an absolute address below 2 GiB.
  void StoreAbsolute(std::uint8_t reg, std::uint64_t address) { Absolute(0x89, reg, address); }
  void LoadAbsolute(std::uint8_t reg, std::uint64_t address) { Absolute(0x8b, reg, address); }
  // The low 16 bytes of a vector register, 0 to 15.
  void StoreVector(std::uint8_t reg, std::uint64_t address);
  // The 32-bit value, sign-extended to 64 bits.
  void StoreAbsoluteImm(std::uint64_t address, std::uint32_t value);
  void AddAbsolute(std::uint8_t reg, std::uint64_t address) {
    Absolute(0x03, reg, address);
  }  // changes flags
  void SubtractAbsolute(std::uint8_t reg, std::uint64_t address) {
    Absolute(0x2b, reg, address);
  }  // changes flags
  void CompareAbsolute(std::uint8_t reg, std::uint64_t address) {
    Absolute(0x3b, reg, address);
  }  // changes flags
  void PushAbsolute(std::uint64_t address);
  void PopAbsolute(std::uint64_t address);

  void MoveImm(std::uint8_t reg, std::uint64_t value);
  void Move(std::uint8_t to, std::uint8_t from);
  // A 64-bit instruction with one register and base + displacement; base may be any general
  // register.
  void WithBase(std::uint8_t opcode, std::uint8_t reg, std::uint8_t base, std::int32_t displacement,
                bool gs);
  void Lea(std::uint8_t reg, std::uint8_t base, std::int32_t displacement) {
    WithBase(0x8d, reg, base, displacement, false);
  }
  // reg = base + index + displacement; index other than rsp
  void LeaSum(std::uint8_t reg, std::uint8_t base, std::uint8_t index,
              std::int32_t displacement = 0);
  // The low 16 bits of reg = those of base + displacement; base other than rsp and r12.
  void Lea16(std::uint8_t reg, std::uint8_t base, std::int8_t displacement);
  void Not(std::uint8_t reg);
  void And32(std::uint8_t to, std::uint8_t from);  // to32 &= from32; changes flags
  // A 64-bit instruction with one register and a ModRM operand, without the operand's own segment;
  // its base may be kNoRegister, not kRip.
  void WithOperand(std::uint8_t opcode, std::uint8_t reg, const MemoryOperand& operand, bool gs);
  void LeaOperand(std::uint8_t reg, const MemoryOperand& operand) {
    WithOperand(0x8d, reg, operand, false);
  }
  void Push(std::uint8_t reg);
  void Pop(std::uint8_t reg);

  // Jumps with a 32-bit displacement, to be set later: the answer is the offset of the
  // displacement.
  std::uint32_t Jump();
  std::uint32_t JumpIf(std::uint8_t condition);  // condition: the low half of the opcode of jcc
  std::uint32_t Call();
  void SetByte(std::uint32_t at, std::uint8_t value) { memory_[at] = value; }
  void SetDisplacement(std::uint32_t at, std::uint64_t target);
  void JumpTo(std::uint64_t target) { SetDisplacement(Jump(), target); }
  void CallTo(std::uint64_t target) { SetDisplacement(Call(), target); }
  void JumpThroughAbsolute(std::uint64_t address);

  // No-operations until the byte `ahead` bytes from here is at a multiple of 4.
  void AlignAhead(unsigned ahead);

 private:
  void Append(const void* bytes, std::size_t size) {
    if (memory_.size() - size_ < size) memory_.resize(2 * (memory_.size() + size));
    std::memcpy(memory_.data() + size_, bytes, size);
    size_ += size;
  }
  void Absolute(std::uint8_t opcode, std::uint8_t reg, std::uint64_t address);

  std::uint64_t address_;
  std::vector<std::uint8_t> memory_;  // more than is used
  std::size_t size_ = 0;
};

}  // namespace trapline
