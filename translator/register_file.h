// The registers of a thread of the program. Plain data, for the agent too.
#pragma once

#include <cstdint>

namespace trapline {

// Operand registers. 0 to 15 are the general registers in the order of their encoding (rax, rcx,
// rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15).
inline constexpr std::uint8_t kRax = 0;
inline constexpr std::uint8_t kRcx = 1;
inline constexpr std::uint8_t kRdx = 2;
inline constexpr std::uint8_t kRbx = 3;
inline constexpr std::uint8_t kRsp = 4;
inline constexpr std::uint8_t kRbp = 5;
inline constexpr std::uint8_t kRsi = 6;
inline constexpr std::uint8_t kRdi = 7;
inline constexpr std::uint8_t kRip = 16;  // base only: the address of the next instruction
inline constexpr std::uint8_t kNoRegister = 0xff;

struct RegisterFile {
  std::uint64_t gpr[16] = {};  // in the order of their encoding
  std::uint64_t rip = 0;       // of the instruction itself
  std::uint64_t rflags = 0;
  std::uint64_t fs_base = 0;
  std::uint64_t gs_base = 0;
  // An XSAVE image in standard format (SDM vol. 1, 13.4) with this processor's offsets, not owned.
  // Needed for instructions with MaskKind or kGather; may be null when there is none.
  const unsigned char* xsave = nullptr;
};

}  // namespace trapline
