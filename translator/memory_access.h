// The bytes an instruction is about to touch, from its description and the registers before it
// runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "translator/elements.h"
#include "translator/instruction.h"
#include "translator/register_file.h"

namespace trapline {

struct MemoryAccess {
  std::uint64_t address = 0;  // linear: segment base included
  std::uint64_t size = 0;     // bytes, never 0
  bool read = false;
  bool write = false;
  bool atomic = false;

  bool operator==(const MemoryAccess&) const = default;
};

// The accesses of one instruction; reads before writes, adjacent lanes of one operand joined.
class MemoryAccessList {
 public:
  // 64 lanes of one byte make at most 32 runs, 16 lanes of a gather 16; two more for other
  // operands.
  static constexpr std::size_t kCapacity = 34;

  const MemoryAccess* begin() const { return accesses_.data(); }
  const MemoryAccess* end() const { return accesses_.data() + size_; }
  std::size_t size() const { return size_; }
  const MemoryAccess& operator[](std::size_t i) const { return accesses_[i]; }

  // False when the instruction touches memory that is not in the list: its effects are unknown, or
  // it needs vector registers and `xsave` is null.
  bool complete() const { return complete_; }

  void Add(const MemoryAccess& access);
  void SetIncomplete() { complete_ = false; }

 private:
  std::size_t size_ = 0;
  bool complete_ = true;
  std::array<MemoryAccess, kCapacity> accesses_;
};

// Repeated string instructions: movs, stos, lods, ins and outs give the whole range that is left,
// cmps and scas the next element, for they may end at any. An instruction whose mask or count is
// zero touches nothing. xsave and its kin count as touching every component that edx:eax and XCR0
// select.
MemoryAccessList Accesses(const Instruction& instruction, const RegisterFile& registers);

// What this processor wants the operand's address to be a multiple of. 1: nothing.
std::uint32_t RequiredAlignment(const Instruction& instruction, const MemoryOperand& operand);

// Of a linear address of 48 bits, sign-extended: others are refused.
constexpr bool IsCanonical(std::uint64_t address) { return address + (1ull << 47) < 1ull << 48; }

// How the processor refuses an instruction because of an address: by the stack segment's
// exception if it is one on the stack and not canonical, else by that of general protection.
enum class Refusal : std::uint8_t { kNone, kStack, kProtection };
Refusal RefusalOf(const Instruction& instruction, const RegisterFile& registers);

// Of this processor.
const VectorLayout& LayoutOfVectors();

// Whether Accesses() needs the vector registers.
bool NeedsVectors(const Instruction& instruction);

}  // namespace trapline
