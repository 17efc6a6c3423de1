// How to get from one frame to its caller: the call frame information for one pc, in a form that
// needs neither libdw nor the file any more.
#pragma once

#include <elfutils/libdw.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "symbols/dwarf_expression.h"
#include "symbols/memory_reader.h"

namespace trapline {

// The usual rule in 8 bytes: CFA = register + offset, return address at CFA-8, each callee-saved
// register either unchanged or in one of the 15 words below it. Everything else is a kind of its
// own.
class CompactRule {
 public:
  enum class Kind : std::uint8_t {
    kUnknown,       // not looked up yet
    kRegular,       //
    kFull,          // in a table, at index()
    kSignal,        // a signal trampoline: rsp points to a ucontext (sigreturn(2))
    kFramePointer,  // no call frame information
    kEnd,           // the outermost frame
    kNoCode,        // not executable: the pc was none
  };
  static constexpr int kSavedCount = 6;
  // Which nibble belongs to which register.
  static constexpr std::array<int, kSavedCount> kSaved = {kRbx, kRbp, 12, 13, 14, 15};

  constexpr CompactRule() = default;
  explicit constexpr CompactRule(std::uint64_t bits) : bits_(bits) {}
  explicit constexpr CompactRule(Kind kind, std::uint32_t index = 0)
      : bits_(static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(index) << kCfaShift) {}

  // Nothing if the offset does not fit.
  static std::optional<CompactRule> Regular(int cfa_register, std::int64_t cfa_offset) {
    constexpr std::int64_t kLimit = 1 << 23;
    if (cfa_register < 0 || cfa_register > kR15 || cfa_offset < -kLimit || cfa_offset >= kLimit)
      return std::nullopt;
    CompactRule rule(Kind::kRegular);
    rule.bits_ |= static_cast<std::uint64_t>(cfa_register) << kRegisterShift;
    rule.bits_ |= (static_cast<std::uint64_t>(cfa_offset) & 0xffffff) << kCfaShift;
    return rule;
  }
  // Register kSaved[which] lies `words` words below the word of the return address. False if that
  // does not fit.
  bool SetSaved(int which, std::int64_t words) {
    if (words < 1 || words > 15) return false;
    bits_ |= static_cast<std::uint64_t>(words) << (kSavedShift + 4 * which);
    return true;
  }

  constexpr std::uint64_t bits() const { return bits_; }
  constexpr Kind kind() const { return static_cast<Kind>(bits_ & 7); }
  constexpr std::uint32_t index() const { return static_cast<std::uint32_t>(bits_ >> kCfaShift); }
  constexpr int cfa_register() const { return static_cast<int>(bits_ >> kRegisterShift & 15); }
  constexpr std::int64_t cfa_offset() const {
    return static_cast<std::int64_t>(bits_ << (64 - kCfaShift - 24)) >> 40;
  }
  // All nibbles at once: 0 = unchanged.
  constexpr std::uint32_t saved() const {
    return static_cast<std::uint32_t>(bits_ >> kSavedShift) & 0xffffff;
  }

 private:
  static constexpr int kRegisterShift = 3, kCfaShift = 8, kSavedShift = 32;
  std::uint64_t bits_ = 0;
};
static_assert(sizeof(CompactRule) == 8);

// Any rule that DWARF can express.
struct FullRule {
  enum class Kind : std::uint8_t { kSame, kUndefined, kExpression };
  struct Register {
    Kind kind = Kind::kSame;
    std::vector<Dwarf_Op> expression;  // a location description; may begin from the CFA
  };
  bool is_signal_frame = false;  // what it gives is no caller, but what was interrupted
  std::vector<Dwarf_Op> cfa;
  std::array<Register, kRegisterCount> registers;

  // The caller's registers (rip in kReturnAddress) from the frame's own. False if memory cannot be
  // read or the expressions are not understood. `cfa` is set as soon as it is known.
  bool Apply(const FrameRegisters& frame, const MemoryReader& memory, FrameRegisters& caller,
             std::uint64_t& cfa_value) const;
};

// What libdw says of the frame at one pc. Nothing if libdw fails.
std::optional<FullRule> ReadRule(Dwarf_Frame* frame);

// The same in 8 bytes, if it is of the usual form.
std::optional<CompactRule> Compact(const FullRule& rule);

}  // namespace trapline
