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

// The program's instructions that one thread has faulted at lately. Not thread-safe.
class RecentInstructions {
 public:
  // `version`: of the code (AddressSpace::code_version), from before it was read. Null: not known,
  // or no longer.
  const Instruction* Find(std::uint64_t rip, std::uint64_t version) const {
    const Entry& entry = entries_[rip % kEntries];
    return entry.rip == rip && entry.version == version ? &entry.instruction : nullptr;
  }
  void Add(std::uint64_t rip, std::uint64_t version, const Instruction& instruction) {
    entries_[rip % kEntries] = {rip, version, instruction};
  }

 private:
  struct Entry {
    std::uint64_t rip = 0, version = 0;
    Instruction instruction;
  };
  static constexpr std::size_t kEntries = 61;  // 10 KiB
  std::array<Entry, kEntries> entries_;
};

}  // namespace trapline
