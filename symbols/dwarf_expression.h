// Evaluates DWARF expressions (DWARF 5 section 2.5) of call frame information and of variables in
// memory.
#pragma once

#include <elfutils/libdw.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "symbols/memory_reader.h"

namespace trapline {

// DWARF register numbers of x86-64 (psABI figure 3.36).
inline constexpr int kRegisterCount = 17;
inline constexpr int kRbx = 3, kRbp = 6, kRsp = 7, kR12 = 12, kR15 = 15, kReturnAddress = 16;

using FrameRegisters = std::array<std::uint64_t, kRegisterCount>;  // by DWARF number

struct EvaluationContext {
  const FrameRegisters& registers;
  const MemoryReader& memory;
  std::uint32_t known_registers = ~0u;  // bit n: register n
  std::optional<std::uint64_t> cfa = std::nullopt;
  std::optional<std::uint64_t> frame_base = std::nullopt;
};

// The value on top of the stack at the end. `is_value`: it is the object's value, else its address.
// False if something it needs is not known or cannot be read, or for operations that such
// expressions have no use for: calls, pieces, types.
bool EvaluateExpression(std::span<const Dwarf_Op> operations, const EvaluationContext& context,
                        std::uint64_t& result, bool& is_value);

}  // namespace trapline
