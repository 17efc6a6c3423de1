// Instructions of the program's that have been decoded, so that one which traps again and again is
// decoded once.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "translator/instruction.h"

namespace trapline {

// Thread-safe.
class InstructionCache {
 public:
  // The instruction at `rip`; nothing if it cannot be read or decoded.
  std::optional<Instruction> DecodeAt(std::uint64_t rip);

  // Held around fork; taken after Tracking's.
  std::mutex& mutex() { return mutex_; }

 private:
  struct CachedInstruction {
    std::array<unsigned char, kMaximumInstructionLength> bytes;
    Instruction instruction;
  };

  std::mutex mutex_;
  std::unordered_map<std::uint64_t, CachedInstruction> instructions_;  // by address
};

}  // namespace trapline
