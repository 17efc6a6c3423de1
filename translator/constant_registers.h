// Which constants of the code are in registers: as much as tells which pointers to tables of
// virtual functions it has, and which stores may be of those (docs/translator.md).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "translator/instruction.h"

namespace trapline {

struct ConstantWord {
  enum class Kind : std::uint8_t {
    kUnknown,   // from before, or from the stack
    kComputed,  // from something else than constants
    kValue,
    kLoaded,  // from a place relative to RIP
  };
  Kind kind = Kind::kUnknown;
  std::uint64_t value = 0;  // of kLoaded: where from
  std::uint64_t added = 0;  // of kLoaded: to what was there

  bool operator==(const ConstantWord&) const = default;
  static ConstantWord Computed() { return {Kind::kComputed, 0, 0}; }
  static ConstantWord Of(std::uint64_t value) { return {Kind::kValue, value, 0}; }
  static ConstantWord LoadedFrom(std::uint64_t address) { return {Kind::kLoaded, address, 0}; }
  ConstantWord Plus(std::uint64_t more) const;
};

// One word of 8 bytes, or two side by side.
struct ConstantWords {
  unsigned count = 0;
  std::array<ConstantWord, 2> words;

  bool Has(ConstantWord::Kind kind) const {
    return (count > 0 && words[0].kind == kind) || (count > 1 && words[1].kind == kind);
  }
};

// Where what a store stores is before.
struct StoredValue {
  enum class Source : std::uint8_t {
    kNone,
    kImmediate,
    kGeneral,
    kVectorLow,
    kVectorHigh,
    kVector
  };
  Source source = Source::kNone;  // kNone: it is no plain store of one or two words
  std::uint8_t reg = 0;
  std::uint64_t immediate = 0;

  unsigned words() const { return source == Source::kVector ? 2 : 1; }
  bool in_vector() const { return source >= Source::kVectorLow; }
};
// `bytes`: of the instruction; without them immediates are none.
StoredValue StoredBy(const Instruction& in, std::span<const std::uint8_t> bytes);

// Follows straight code, instruction by instruction. Not thread-safe.
class ConstantRegisters {
 public:
  // Code that is come to from several places.
  void Clear() { general_set_ = vector_set_ = 0; }
  // The instruction, of these bytes at `rip`, which writes the registers `written`
  // (MaybeWrittenRegisters), runs. Returns what it has put into a register or, of an immediate,
  // memory, if those are constants.
  ConstantWords Follow(const Instruction& in, std::span<const std::uint8_t> bytes,
                       std::uint64_t rip, std::uint16_t written);
  ConstantWords Words(const StoredValue& stored) const;

 private:
  // Count 0: nothing is known of what the instruction leaves.
  ConstantWords FollowGeneral(const Instruction& in, std::span<const std::uint8_t> bytes,
                              std::uint64_t rip);
  ConstantWords FollowVector(const Instruction& in, std::span<const std::uint8_t> bytes,
                             std::uint64_t rip);

  using VectorWords = std::array<ConstantWord, 2>;  // its low 16 bytes

  ConstantWord General(std::uint8_t reg) const {
    return (general_set_ >> reg & 1) != 0 ? general_[reg] : ConstantWord();
  }
  void SetGeneral(std::uint8_t reg, const ConstantWord& word) {
    general_[reg] = word;
    general_set_ |= 1u << reg;
  }
  VectorWords Vector(std::uint8_t reg) const {
    return (vector_set_ >> (reg & 15) & 1) != 0 ? vector_[reg & 15] : VectorWords();
  }
  void SetVector(std::uint8_t reg, const VectorWords& words) {
    vector_[reg & 15] = words;
    vector_set_ |= 1u << (reg & 15);
  }

  // Bit i: what is in register i since Clear is in its place.
  std::uint32_t general_set_ = 0, vector_set_ = 0;
  std::array<ConstantWord, 16> general_;
  std::array<VectorWords, 16> vector_;
};

// What the program's memory holds, and whether a word of it is a pointer to a table of virtual
// functions, as objects have it.
struct TablePointers {
  std::function<bool(std::uint64_t address, std::uint64_t& word)> read_word;
  std::function<bool(std::uint64_t word)> is_one;
};

// Copies up to `size` bytes of code at `address`; the number of bytes that could be read.
using CodeReader =
    std::function<std::size_t(std::uint64_t address, std::uint8_t* to, std::size_t size)>;

// The pointers to tables that code has. Not thread-safe.
class NamedTables {
 public:
  explicit NamedTables(const TablePointers& pointers) : pointers_(pointers) {}

  void Clear() { found_.clear(); }
  // Of the constants of an instruction.
  void Add(const ConstantWords& words);
  // Of the code before `rip`, read from wherever an instruction may begin that makes one.
  void AddBefore(const CodeReader& read, std::uint64_t rip);
  // Whether these may all be among them.
  bool MayHold(const ConstantWords& words);

  std::span<const std::uint64_t> found() const { return found_; }

 private:
  // The pointer to a table that the word is; 0: it is none.
  std::uint64_t PointerOf(const ConstantWord& word);
  std::uint64_t FindPointer(const ConstantWord& word) const;

  const TablePointers& pointers_;
  std::vector<std::uint64_t> found_;
  // What was found out of constants lately, by a hash: code has the same ones again and again.
  struct Known {
    ConstantWord word;
    std::uint64_t pointer = 0;
  };
  std::vector<Known> known_;
};

}  // namespace trapline
