#include "tools/loop_values.h"

#include <algorithm>
#include <cstring>

#include "translator/register_use.h"

namespace trapline {
namespace {

using Kind = Value::Kind;

constexpr std::uint32_t kWord = 8;  // bytes

Value Number(std::uint64_t number) { return {.kind = Kind::kNumber, .plus = number}; }

// What is computed from one of several may be another one each time: p = p + 8.
Value Plus(Value value, std::int64_t number) {
  if (!value.IsExact()) return number == 0 ? value : Value();
  value.plus += static_cast<std::uint64_t>(number);
  return value;
}

// What the bytes of the stack held at first.
Value Unstored(const Value& address) {
  return {.kind = Kind::kSlot, .of = address.of << 32 ^ address.plus};
}

Value OneOf(const Value& a, const Value& b) {
  if (a == b) return a;
  return {.kind = a.kind == Kind::kAny || b.kind == Kind::kAny ? Kind::kAny : Kind::kOneOf};
}

bool Overlap(const Value& a, std::uint64_t a_size, const Value& b, std::uint64_t b_size) {
  // Each by the pointer of its own; what one frame has by both is not stored by either in turns.
  return a.of == b.of && (b.plus - a.plus < a_size || a.plus - b.plus < b_size);
}

std::int64_t NumberAt(std::span<const unsigned char> code, std::size_t offset, std::size_t size) {
  std::int32_t number = 0;
  if (size != 1 && size != sizeof number) return 0;
  std::memcpy(&number, &code[offset], size);
  return size == 1 ? static_cast<std::int8_t>(number) : number;
}

// What the instruction makes, of values that are exact or not.
Value Made(const Step& step, bool of_exact) {
  if (!of_exact) return {};
  return {.kind = Kind::kResult, .of = step.number};
}

// A value that the instruction copies as it is, or the lower half of it.
Value Moved(const Step& step, const Value& value) {
  if (step.instruction.rex_w() || !value.IsExact()) return value;
  if (value.kind == Kind::kNumber) return Number(static_cast<std::uint32_t>(value.plus));
  if (value.plus != 0) return Made(step, true);
  Value moved = value;
  moved.narrow = true;
  return moved;
}

Value Added(const Step& step, const Value& value, std::int64_t number) {
  if (!value.IsExact()) return {};
  if (step.instruction.rex_w()) return Plus(value, number);
  if (value.kind != Kind::kNumber) return Made(step, true);
  return Number(static_cast<std::uint32_t>(value.plus + static_cast<std::uint64_t>(number)));
}

}  // namespace

void Step::Take(const Instruction& taken, std::span<const unsigned char> code) {
  instruction = taken;
  immediate = NumberAt(code, taken.immediate_offset, taken.immediate_size);
  displacement = NumberAt(code, taken.displacement_offset, taken.displacement_size);
}

LoopValues LoopValues::AtFirst() {
  LoopValues values;
  for (std::size_t reg = 0; reg < values.registers_.size(); ++reg)
    values.registers_[reg] = {.kind = Kind::kRegister, .of = reg};
  return values;
}

Location LoopValues::AddressOf(const Step& step, const MemoryOperand& operand) const {
  if (operand.address_is_32_bits || operand.pattern == Pattern::kGather) return {.base = {}};
  Location location;
  if (operand.base == kRip) {
    location.base = Number(step.ip + step.instruction.length);
  } else if (operand.base != kNoRegister) {
    location.base = Of(operand.base);
  }
  std::int64_t displacement = operand.displacement;
  if (operand.index != kNoRegister) {
    const Value& index = operand.index < registers_.size() ? Of(operand.index) : Value();
    if (index.kind == Kind::kNumber) {
      displacement += static_cast<std::int64_t>(index.plus * operand.scale);
    } else {
      location.index = index;
      location.scale = operand.scale;
    }
  }
  // An address is fixed all the same.
  if (location.base.kind != Kind::kOneOf) location.base = Plus(location.base, displacement);
  return location;
}

Value LoopValues::Execute(const Step& step) {
  const Instruction& in = step.instruction;
  const Result result = ResultOf(step);
  StoreOperands(step);
  const Value stack = Of(kRsp);
  Forget(MaybeWrittenRegisters(in));
  if (result.reg != kNoRegister) registers_[result.reg] = result.value;
  const bool moves_stack = in.encoding == Encoding::kLegacy && in.map == kMapOneByte &&
                           ((in.opcode & 0xf0) == 0x50 || in.opcode == 0x68 || in.opcode == 0x6a);
  if (moves_stack && !in.operand_size_prefix && result.reg != kRsp) {
    const bool pops = (in.opcode & 0xf8) == 0x58;
    registers_[kRsp] = Plus(stack, pops ? std::int64_t{kWord} : -std::int64_t{kWord});
  }
  return result.value;
}

void LoopValues::Forget(unsigned registers) {
  for (std::size_t reg = 0; reg < registers_.size(); ++reg) {
    if ((registers >> reg & 1) != 0) registers_[reg] = {};
  }
}

bool LoopValues::Join(const LoopValues& other) {
  bool less = false;
  const auto meet = [&less](Value& value, const Value& another) {
    const Value both = OneOf(value, another);
    less |= both != value;
    value = both;
  };
  for (std::size_t reg = 0; reg < registers_.size(); ++reg)
    meet(registers_[reg], other.registers_[reg]);
  const auto unstored = [](const Slot& slot) {
    return slot.size == kWord ? Unstored(slot.address) : Value();
  };
  const auto same = [](const Slot& slot) {
    return [&slot](const Slot& o) { return o.address == slot.address && o.size == slot.size; };
  };
  for (Slot& slot : slots_) {
    const auto found = std::ranges::find_if(other.slots_, same(slot));
    meet(slot.value, found == other.slots_.end() ? unstored(slot) : found->value);
  }
  for (const Slot& slot : other.slots_) {
    if (std::ranges::find_if(slots_, same(slot)) != slots_.end()) continue;
    less = true;
    if (slots_.size() == kMostSlots) {
      lost_slots_ = true;
      break;
    }
    slots_.push_back({slot.address, slot.size, OneOf(unstored(slot), slot.value)});
  }
  if (other.lost_slots_ && !lost_slots_) lost_slots_ = less = true;
  return less;
}

Value LoopValues::LoadedFromStack(const Step& step, const Value& address,
                                  std::uint32_t size) const {
  if (lost_slots_) return {};
  const Slot* found = nullptr;
  for (const Slot& slot : slots_) {
    if (!Overlap(slot.address, slot.size, address, size)) continue;
    if (found != nullptr || slot.address != address || slot.size != size) return {};
    found = &slot;
  }
  if (found != nullptr) return found->value;
  return size == kWord ? Unstored(address) : Made(step, true);
}

// By the first operand of the instruction.
Value LoopValues::Loaded(const Step& step) const {
  const MemoryOperand& operand = step.instruction.operands[0];
  const Location location = AddressOf(step, operand);
  if (operand.segment != Segment::kNone) return Made(step, location.IsExact());
  if (location.HasIndex()) return Made(step, location.IsExact() && !location.IsOnStack());
  if (location.IsOnStack()) return LoadedFromStack(step, location.base, operand.size);
  if (location.base.kind == Kind::kNumber && operand.size == kWord)
    return {.kind = Kind::kLoaded, .of = location.base.plus};
  return Made(step, location.IsExact());
}

void LoopValues::Store(const Value& address, std::uint32_t size, const Value& value) {
  const auto covered = [&](const Slot& slot) {
    return slot.address.of == address.of && slot.address.plus - address.plus < size &&
           slot.address.plus + slot.size - address.plus <= size;
  };
  slots_.erase(std::remove_if(slots_.begin(), slots_.end(), covered), slots_.end());
  if (slots_.size() == kMostSlots) {
    lost_slots_ = true;
  } else {
    slots_.push_back({address, size, value});
  }
}

// What the instruction stores, if that is a register as it is.
Value LoopValues::Stored(const Step& step) const {
  const Instruction& in = step.instruction;
  if (in.encoding != Encoding::kLegacy || in.map != kMapOneByte || in.operand_size_prefix)
    return {};
  if (in.opcode == 0x89 && in.rex_w()) return Of(in.reg());
  return (in.opcode & 0xf8) == 0x50 ? Of(in.opcode_reg()) : Value();
}

void LoopValues::StoreOperands(const Step& step) {
  for (const MemoryOperand& operand : step.instruction.memory()) {
    if (!operand.writes || operand.segment != Segment::kNone) continue;
    const Location location = AddressOf(step, operand);
    if (!location.IsOnStack()) continue;
    if (operand.size == 0 || operand.pattern != Pattern::kWhole || location.HasIndex()) {
      lost_slots_ = true;
    } else {
      Store(location.base, operand.size, Stored(step));
    }
  }
}

Value LoopValues::RegisterOrMemory(const Step& step) const {
  return step.instruction.modrm_is_memory() ? Loaded(step) : Of(step.instruction.rm());
}

LoopValues::Result LoopValues::ResultOf(const Step& step) const {
  const Instruction& in = step.instruction;
  if (in.encoding != Encoding::kLegacy || in.operand_size_prefix) return {};
  if (in.map == kMap0F) {
    const bool multiplies = in.opcode == 0xaf;
    const bool of_byte = in.opcode == 0xb6 || in.opcode == 0xbe;  // zero- or sign-extended
    if (of_byte && !in.modrm_is_memory() && NamesHighByte(in)) return {};
    if (multiplies || of_byte || in.opcode == 0xb7 || in.opcode == 0xbf) {
      const bool exact =
          RegisterOrMemory(step).IsExact() && (!multiplies || Of(in.reg()).IsExact());
      return {in.reg(), Made(step, exact)};
    }
    const bool chooses = (in.opcode & 0xf0) == 0x40 && !in.modrm_is_memory() && in.rex_w();
    return chooses ? Result{in.reg(), OneOf(Of(in.reg()), Of(in.rm()))} : Result{};
  }
  if (in.map != kMapOneByte) return {};
  const Result moved = MoveResult(step);
  return moved.reg != kNoRegister ? moved : SumResult(step);
}

// Moves, lea, pop.
LoopValues::Result LoopValues::MoveResult(const Step& step) const {
  const Instruction& in = step.instruction;
  switch (in.opcode) {
    case 0x63:  // movslq
      return {in.reg(), Made(step, RegisterOrMemory(step).IsExact())};
    case 0x89:
      if (in.modrm_is_memory()) return {};
      return {in.rm(), Moved(step, Of(in.reg()))};
    case 0x8b:
      return {in.reg(), Moved(step, RegisterOrMemory(step))};
    case 0x8d: {
      if (in.segment != Segment::kNone || in.address_size_prefix) return {};
      MemoryOperand operand;
      operand.base = in.base;
      operand.index = in.index;
      operand.displacement = step.displacement;
      const Location location = AddressOf(step, operand);
      if (in.index != kNoRegister) return {in.reg(), Made(step, location.IsExact())};
      if (location.base.kind == Kind::kOneOf && step.displacement != 0) return {};
      return {in.reg(), Moved(step, location.base)};
    }
    case 0xc7:
      if (in.modrm_is_memory()) return {};
      return {in.rm(), Moved(step, Number(static_cast<std::uint64_t>(step.immediate)))};
    default:
      break;
  }
  if ((in.opcode & 0xf8) == 0xb8) {
    return {in.opcode_reg(),
            in.rex_w() ? Made(step, true) : Number(static_cast<std::uint32_t>(step.immediate))};
  }
  if ((in.opcode & 0xf8) == 0x58) return {in.opcode_reg(), Loaded(step)};
  return {};
}

// Sums and the like.
LoopValues::Result LoopValues::SumResult(const Step& step) const {
  const Instruction& in = step.instruction;
  const unsigned operation = in.modrm >> 3 & 7;  // of the forms with a number in them
  enum : unsigned { kAdd = 0, kCarried = 2, kBorrowed = 3, kSubtract = 5, kCompare = 7 };
  if (in.opcode < 0x40) {  // add, or, and, sub, xor, with a register or memory
    const unsigned of = in.opcode >> 3;
    const bool to_reg = (in.opcode & 2) != 0;
    if ((in.opcode & 5) != 1 || of == kCarried || of == kBorrowed || of == kCompare ||
        (in.modrm_is_memory() && !to_reg)) {
      return {};
    }
    const std::uint8_t reg = to_reg ? in.reg() : in.rm();
    if (!in.modrm_is_memory() && in.reg() == in.rm() && (of == 6 || of == kSubtract))
      return {reg, Number(0)};
    const bool exact = RegisterOrMemory(step).IsExact() && Of(in.reg()).IsExact();
    return {reg, Made(step, exact)};
  }
  if (in.modrm_is_memory()) return {};
  switch (in.opcode) {
    case 0x69:  // imul
    case 0x6b:
      return {in.reg(), Made(step, Of(in.rm()).IsExact())};
    case 0x81:
    case 0x83:
      if (operation == kAdd) return {in.rm(), Added(step, Of(in.rm()), step.immediate)};
      if (operation == kSubtract) return {in.rm(), Added(step, Of(in.rm()), -step.immediate)};
      if (operation == kCarried || operation == kBorrowed || operation == kCompare) return {};
      return {in.rm(), Made(step, Of(in.rm()).IsExact())};
    case 0xc1:  // shifts
    case 0xd1:
      if (operation == kCarried || operation == kBorrowed) return {};
      return {in.rm(), Made(step, Of(in.rm()).IsExact())};
    case 0xff:
      if (operation > 1) return {};
      return {in.rm(), Added(step, Of(in.rm()), operation == 0 ? 1 : -1)};
    default:
      return {};
  }
}

}  // namespace trapline
