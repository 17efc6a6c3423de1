// Whether machine code does atomic operations, found without knowing where its instructions begin.
#pragma once

#include <cstdint>
#include <span>

namespace trapline {

// Whether `code`, at whose start an instruction begins, may have an instruction that is atomic
// (Instruction::atomic): a lock prefix, xchg with memory, or one of the newer ones. True too where
// the bytes only look like one and decoding from before does not show that they are part of others;
// a true one is missed only behind data that is decoded as instructions up to it, from wherever one
// begins. Takes some 10 ns a byte at most. Thread-safe.
bool MayHoldLockedInstruction(std::span<const std::uint8_t> code);

}  // namespace trapline
