// What registers and words of the stack hold on all ways through a little code, by what they held
// when it began: constant propagation (Kildall, POPL 1973) over names for what is not known.
#pragma once

#include <array>
#include <boost/container/static_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

#include "translator/instruction.h"

namespace trapline {

// The general registers that functions may change by the System V ABI: rax, rcx, rdx, rsi, rdi, r8
// to r11. Bit i stands for register i.
inline constexpr unsigned kCallerSaved = 0xfc7;

struct Value {
  enum class Kind : std::uint8_t {
    kNumber,    // `plus`
    kRegister,  // what register `of` held at first, and `plus`
    kSlot,      // what the 8 bytes at the place `of` of the stack held at first, and `plus`
    kLoaded,    // what the 8 bytes at address `of` hold, and `plus`
    kResult,    // what the instruction numbered `of` makes of such values, and `plus`
    kOneOf,     // by the way one of several of these, as it is
    kAny,       // may be another one each time
  };

  Kind kind = Kind::kAny;
  bool narrow = false;  // before `plus` is added: its lower 32 bits alone
  std::uint64_t of = 0;
  std::uint64_t plus = 0;

  bool operator==(const Value&) const = default;
  bool IsExact() const { return kind < Kind::kOneOf; }
  bool IsNumber(std::uint64_t number) const { return kind == Kind::kNumber && plus == number; }
  // On the thread's stack, by its pointer or that of a frame, whose variables are below it.
  bool IsOnStack() const {
    return kind == Kind::kRegister && !narrow &&
           (of == kRsp || (of == kRbp && static_cast<std::int64_t>(plus) < 0));
  }
};

// The address of an operand in memory.
struct Location {
  Value base{.kind = Value::Kind::kNumber};
  Value index{.kind = Value::Kind::kNumber};  // 0: none
  std::uint8_t scale = 1;

  bool operator==(const Location&) const = default;
  bool IsExact() const { return base.IsExact() && index.IsExact(); }
  bool Varies() const { return base.kind == Value::Kind::kAny || index.kind == Value::Kind::kAny; }
  bool HasIndex() const { return !index.IsNumber(0); }
  bool IsOnStack() const { return base.IsOnStack(); }
};

// An instruction, and the numbers in it.
struct Step {
  std::uint64_t ip = 0;
  std::uint64_t number = 0;  // its own, among those looked at
  Instruction instruction;
  std::int64_t immediate = 0;     // of 1 or 4 bytes
  std::int64_t displacement = 0;  // of its ModRM operand

  // Takes the instruction, with which `code` begins.
  void Take(const Instruction& taken, std::span<const unsigned char> code);
};

class LoopValues {
 public:
  // Where nothing is known: each register holds what it holds.
  static LoopValues AtFirst();

  const Value& Of(std::uint8_t reg) const { return registers_[reg]; }
  Location AddressOf(const Step& step, const MemoryOperand& operand) const;

  // The instruction, which is no branch, was executed. What it gave to the register that it names
  // as its result, kAny if there is none.
  Value Execute(const Step& step);
  // A function was called, or the kernel.
  void Forget(unsigned registers);
  // The same code is reached by another way, too. Returns whether less is known than before.
  bool Join(const LoopValues& other);

 private:
  // Bytes of the stack that were stored since.
  struct Slot {
    Value address;
    std::uint32_t size = 0;  // bytes
    Value value;
  };
  static constexpr std::size_t kMostSlots = 16;

  Value Loaded(const Step& step) const;
  Value LoadedFromStack(const Step& step, const Value& address, std::uint32_t size) const;
  void Store(const Value& address, std::uint32_t size, const Value& value);
  void StoreOperands(const Step& step);
  Value Stored(const Step& step) const;
  // Which register gets which value by the instruction; kNoRegister: not known.
  struct Result {
    std::uint8_t reg = kNoRegister;
    Value value;
  };
  Result ResultOf(const Step& step) const;
  Result MoveResult(const Step& step) const;
  Result SumResult(const Step& step) const;
  Value RegisterOrMemory(const Step& step) const;

  std::array<Value, 16> registers_;
  boost::container::static_vector<Slot, kMostSlots> slots_;
  bool lost_slots_ = false;  // there were more
};

}  // namespace trapline
