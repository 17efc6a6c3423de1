// What one x86-64 instruction does to memory, found from its bytes (Intel SDM vol. 2, AMD APM vol.
// 3 to 5).
//
// The table behind it (opcode_table.cpp) is checked encoding by encoding against a second decoder
// and against the processor itself; see tests/translator. Everything here is a pure function: safe
// from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "translator/memory_operand.h"
#include "translator/register_file.h"

namespace trapline {

// The longest instruction the processor accepts, in bytes.
inline constexpr std::size_t kMaximumInstructionLength = 15;

enum class Repeat : std::uint8_t { kNone, kRep, kRepe, kRepne };

enum class Branch : std::uint8_t {
  kNone,
  kJump,          // direct; `target` says where to
  kConditional,   // direct or falls through (jcc, loop, jrcxz, xbegin)
  kIndirectJump,  // near, through register or memory
  kCall,          // direct, near
  kIndirectCall,  // near
  kReturn,        // near
  kSyscall,       // syscall, sysenter
  kOther,         // far, interrupts, iret, and whatever faults or stops on purpose (ud2, hlt)
};

enum class Encoding : std::uint8_t { kLegacy, kVex, kEvex, kXop, k3dNow };

// Opcode maps, numbered as VEX.mmmmm, EVEX.mmm and XOP.mmmmm number them; 0 is the one-byte map.
inline constexpr std::uint8_t kMapOneByte = 0;
inline constexpr std::uint8_t kMap0F = 1;
inline constexpr std::uint8_t kMap0F38 = 2;
inline constexpr std::uint8_t kMap0F3A = 3;

struct Instruction {
  std::uint8_t length = 0;  // bytes, 1 to 15

  // False when the instruction is known and its length is right, but what it does to memory is not
  // in `operands` (enclu, AMX tiles, LWP ...). Callers must count it as not checked.
  bool effects_known = true;
  // Reads and writes of one operand are one atomic operation: a lock prefix, or xchg with memory.
  bool atomic = false;
  Repeat repeat = Repeat::kNone;  // only of string instructions
  Branch branch = Branch::kNone;
  std::uint64_t target = 0;  // of kJump, kConditional and kCall: absolute

  std::uint8_t operand_count = 0;
  std::array<MemoryOperand, 3> operands{};  // in the order of the processor's accesses

  // The encoding, for those who rewrite the instruction. Offsets are in bytes from the start; 0:
  // there is none.
  Encoding encoding = Encoding::kLegacy;
  std::uint8_t map = kMapOneByte;
  std::uint8_t opcode = 0;     // of k3dNow: the byte at the end
  std::uint8_t mandatory = 0;  // 0, 0x66, 0xf3 or 0xf2: that prefix, or VEX.pp
  std::uint8_t rex =
      0;  // the REX prefix, or the same four bits from VEX and EVEX with 0x40 set; 0: none
  bool operand_size_prefix = false;  // 66h is among the prefixes
  bool address_size_prefix = false;
  bool lock_prefix = false;
  std::uint8_t repeat_prefix = 0;  // 0, 0xf2 or 0xf3: the last of them
  Segment segment = Segment::kNone;
  std::uint8_t opcode_offset = 0;  // of the escape bytes, VEX, EVEX or XOP prefix before the opcode
  bool has_modrm = false;
  std::uint8_t modrm = 0;
  std::uint8_t modrm_offset = 0;
  // Base and index of the ModRM operand, also of those that touch no memory (lea, prefetch):
  // general registers, kRip or kNoRegister. With VSIB the index is a vector register's number, cut
  // to 0 to 15.
  std::uint8_t base = kNoRegister;
  std::uint8_t index = kNoRegister;
  std::uint8_t displacement_offset = 0;
  std::uint8_t displacement_size = 0;
  std::uint8_t immediate_offset = 0;
  std::uint8_t immediate_size = 0;
  std::uint16_t vector_length = 0;  // bytes; 0 where there is none
  std::uint8_t vvvv = 0;            // register number, 0 to 31
  std::uint8_t opmask = 0;          // EVEX.aaa

  std::span<const MemoryOperand> memory() const { return {operands.data(), operand_count}; }
  bool rex_w() const { return (rex & 8) != 0; }
  // ModRM.reg and ModRM.rm with their extension bits, as general registers.
  std::uint8_t reg() const { return static_cast<std::uint8_t>((modrm >> 3 & 7) | (rex & 4) << 1); }
  std::uint8_t rm() const { return static_cast<std::uint8_t>((modrm & 7) | (rex & 1) << 3); }
  // The register in the opcode's low bits, where there is one (push, pop, mov of a number).
  std::uint8_t opcode_reg() const {
    return static_cast<std::uint8_t>((opcode & 7) | (rex & 1) << 3);
  }
  bool modrm_is_memory() const { return has_modrm && modrm >> 6 != 3; }
};

// The instruction of the one-byte map with that opcode.
inline bool IsOneByte(const Instruction& in, std::uint8_t opcode) {
  return in.encoding == Encoding::kLegacy && in.map == kMapOneByte && in.opcode == opcode;
}

// An atomic instruction that can only store what is there already (cmpxchg of the accumulator, by
// which FreeBSD's headers load): nobody can tell it from a load.
bool OnlyReadsMemory(const Instruction& instruction);
// An instruction by which locks are taken (xchg, cmpxchg, bts), as opposed to those that count.
bool IsExchange(const Instruction& instruction);

// A cmov. It reads its operand in any case, but if it does not move nobody can tell: compilers make
// such a load of one that the program makes under a condition.
bool IsConditionalMove(const Instruction& instruction);
// Whether the condition of a jcc, setcc or cmov holds, which is the lower half of its opcode (SDM
// vol. 1, appendix B).
bool ConditionHolds(std::uint8_t opcode, std::uint64_t rflags);

// One range whose address a lea can compute.
bool IsSimple(const MemoryOperand& operand);

// A plain load or store of at most 16 bytes, as atomic ones are compiled to.
bool MayBeAtomic(const Instruction& instruction);
// Of one operand in memory, which it reads and writes without being an atomic operation.
bool IsPlainUpdate(const Instruction& instruction);
// One of both: clang makes such an update of an atomic load, an addition and an atomic store.
bool MayComeOfAtomics(const Instruction& instruction);

// The instruction at the start of `bytes`, which is at address `rip` in 64-bit mode. Nothing when
// the bytes are cut short, are no instruction, or are one that the table does not know.
std::optional<Instruction> Decode(std::span<const std::uint8_t> bytes, std::uint64_t rip);

}  // namespace trapline
