#include "translator/locked_instructions.h"

#include <algorithm>
#include <cstddef>

#include "translator/instruction.h"

namespace trapline {
namespace {

// Decoding that begins inside an instruction falls in step with the others after a few.
constexpr std::size_t kBefore = 80, kBeginnings = 16;

std::optional<Instruction> DecodeAt(std::span<const std::uint8_t> code, std::size_t at) {
  return Decode(code.subspan(at, std::min(kMaximumInstructionLength, code.size() - at)), at);
}

bool IsAtomicAt(std::span<const std::uint8_t> code, std::size_t at) {
  const auto instruction = DecodeAt(code, at);
  return instruction && instruction->atomic;
}

// What an atomic instruction may begin with, prefixes aside that do not make it one.
bool MayBegin(std::uint8_t byte) {
  constexpr std::uint8_t kLock = 0xf0, kExchangeBytes = 0x86, kExchange = 0x87;
  constexpr std::uint8_t kVex = 0xc4, kEscape = 0x0f;  // cmpccxadd; aadd and its like
  return byte == kLock || byte == kExchangeBytes || byte == kExchange || byte == kVex ||
         byte == kEscape;
}

// Whether the byte at `at` belongs to an atomic instruction by decoding from `begin` on.
bool IsReached(std::span<const std::uint8_t> code, std::size_t begin, std::size_t at) {
  while (true) {
    const auto instruction = DecodeAt(code, begin);
    const std::size_t length = instruction ? instruction->length : 1;
    if (begin + length > at) return instruction && instruction->atomic;
    begin += length;
  }
}

}  // namespace

bool MayHoldLockedInstruction(std::span<const std::uint8_t> code) {
  for (std::size_t at = 0; at < code.size(); ++at) {
    if (!MayBegin(code[at]) || !IsAtomicAt(code, at)) continue;
    // Near the start there is none to find out: one begins there.
    const std::size_t first = at - std::min(at, kBefore);
    const std::size_t beginnings = first == 0 ? 1 : kBeginnings;
    for (std::size_t i = 0; i < beginnings; ++i) {
      if (IsReached(code, first + i, at)) return true;
    }
  }
  return false;
}

}  // namespace trapline
