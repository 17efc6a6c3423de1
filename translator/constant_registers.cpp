#include "translator/constant_registers.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "translator/register_use.h"

namespace trapline {
namespace {

std::uint64_t SignedAt(std::span<const std::uint8_t> bytes, unsigned offset, unsigned size) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + offset, size);
  if (size == 0 || size == 8) return value;
  const unsigned unused = 64 - 8 * size;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
}

bool IsLegacy(const Instruction& in, std::uint8_t map) {
  return in.encoding == Encoding::kLegacy && in.map == map;
}

bool IsVectorMap(const Instruction& in, std::uint8_t map) {
  return (in.encoding == Encoding::kLegacy || in.encoding == Encoding::kVex) && in.map == map;
}

constexpr unsigned Code(unsigned mandatory, unsigned opcode) { return mandatory << 8 | opcode; }
unsigned CodeOf(const Instruction& in) { return Code(in.mandatory, in.opcode); }

// What a load from the instruction's operand gives, `more` bytes on.
ConstantWord LoadedWord(const Instruction& in, std::span<const std::uint8_t> bytes,
                        std::uint64_t rip, std::uint64_t more = 0) {
  if (in.segment != Segment::kNone || in.address_size_prefix) return ConstantWord::Computed();
  if (in.base == kRip) {
    const std::uint64_t address =
        rip + in.length + SignedAt(bytes, in.displacement_offset, in.displacement_size);
    return ConstantWord::LoadedFrom(address + more);
  }
  const bool on_stack = (in.base == kRsp || in.base == kRbp) && in.index == kNoRegister;
  return on_stack ? ConstantWord() : ConstantWord::Computed();
}

// No table lies in the first pages of memory.
bool MayPointToTable(std::uint64_t address) {
  constexpr std::uint64_t kLowest = 0x1000;
  return address >= kLowest && address % 8 == 0;
}

// May begin an instruction that makes a constant of 8 bytes: lea or mov relative to RIP, mov of an
// immediate; movq or a load of 16 bytes relative to RIP.
bool MayMakeConstant(const std::uint8_t* at) {
  const bool wide = (at[0] & 0xf8) == 0x48;
  if (wide && (at[1] == 0x8d || at[1] == 0x8b)) return (at[2] & 0xc7) == 0x05;
  if (at[0] == 0x0f && (at[1] == 0x10 || at[1] == 0x28 || at[1] == 0x6f || at[1] == 0x7e))
    return (at[2] & 0xc7) == 0x05;
  if ((wide && at[1] == 0xc7) || (at[0] & 0xf8) == 0xb8) {
    std::uint32_t immediate = 0;
    std::memcpy(&immediate, at + (wide ? 3 : 1), sizeof immediate);
    return MayPointToTable(immediate);
  }
  return false;
}

}  // namespace

ConstantWord ConstantWord::Plus(std::uint64_t more) const {
  ConstantWord sum = *this;
  if (kind == Kind::kValue) sum.value += more;
  if (kind == Kind::kLoaded) sum.added += more;
  return sum;
}

StoredValue StoredBy(const Instruction& in, std::span<const std::uint8_t> bytes) {
  using Source = StoredValue::Source;
  if (in.operand_count != 1 || !in.modrm_is_memory() || in.lock_prefix) return {};
  const MemoryOperand& operand = in.operands[0];
  if (operand.reads || !operand.writes || !IsSimple(operand)) return {};
  if (IsLegacy(in, kMapOneByte) && in.rex_w() && operand.size == 8) {
    if (in.opcode == 0x89) return {Source::kGeneral, in.reg(), 0};
    if (in.opcode != 0xc7 || bytes.empty()) return {};
    return {Source::kImmediate, 0, SignedAt(bytes, in.immediate_offset, in.immediate_size)};
  }
  if (!IsVectorMap(in, kMap0F)) return {};
  switch (CodeOf(in)) {
    case Code(0x66, 0xd6):  // movq
      return {Source::kVectorLow, in.reg(), 0};
    case Code(0, 0x17):  // movhps
      return {Source::kVectorHigh, in.reg(), 0};
    case Code(0, 0x11):  // movups, movaps, movupd, movapd, movdqa, movdqu
    case Code(0, 0x29):
    case Code(0x66, 0x11):
    case Code(0x66, 0x29):
    case Code(0x66, 0x7f):
    case Code(0xf3, 0x7f):
      if (operand.size != 16) return {};
      return {Source::kVector, in.reg(), 0};
    default:
      return {};
  }
}

ConstantWords ConstantRegisters::Words(const StoredValue& stored) const {
  using Source = StoredValue::Source;
  switch (stored.source) {
    case Source::kNone:
      return {};
    case Source::kImmediate:
      return {1, {ConstantWord::Of(stored.immediate)}};
    case Source::kGeneral:
      return {1, {General(stored.reg)}};
    case Source::kVectorLow:
      return {1, {Vector(stored.reg)[0]}};
    case Source::kVectorHigh:
      return {1, {Vector(stored.reg)[1]}};
    case Source::kVector:
      return {2, Vector(stored.reg)};
  }
  return {};
}

ConstantWords ConstantRegisters::Follow(const Instruction& in, std::span<const std::uint8_t> bytes,
                                        std::uint64_t rip, std::uint16_t written) {
  const auto if_constant = [](const ConstantWords& words) {
    const auto is_constant = [](const ConstantWord& word) {
      return word.kind == ConstantWord::Kind::kValue || word.kind == ConstantWord::Kind::kLoaded;
    };
    return std::any_of(words.words.begin(), words.words.begin() + words.count, is_constant)
               ? words
               : ConstantWords();
  };
  if (in.modrm_is_memory() && in.operand_count == 1 && !in.operands[0].reads &&
      in.operands[0].writes) {
    const StoredValue stored = StoredBy(in, bytes);
    return stored.source == StoredValue::Source::kImmediate ? Words(stored) : ConstantWords();
  }
  ConstantWords made = FollowGeneral(in, bytes, rip);
  if (made.count == 0) made = FollowVector(in, bytes, rip);
  if (made.count != 0) return if_constant(made);
  for (std::uint32_t left = written; left != 0; left &= left - 1)
    SetGeneral(static_cast<std::uint8_t>(std::countr_zero(left)), ConstantWord::Computed());
  if (IsLegacy(in, kMapOneByte) || !in.has_modrm) return {};
  // Of vector instructions that are not known here one of these is the destination.
  const VectorWords computed = {ConstantWord::Computed(), ConstantWord::Computed()};
  SetVector(in.reg(), computed);
  SetVector(in.rm(), computed);
  return {};
}

ConstantWords ConstantRegisters::FollowGeneral(const Instruction& in,
                                               std::span<const std::uint8_t> bytes,
                                               std::uint64_t rip) {
  if (!IsLegacy(in, kMapOneByte) || in.operand_size_prefix) return {};
  const auto put = [this](std::uint8_t reg, const ConstantWord& word) -> ConstantWords {
    SetGeneral(reg, word);
    return {1, {word}};
  };
  if (in.opcode >= 0xb8 && in.opcode <= 0xbf) {  // mov $imm, reg
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + in.immediate_offset, in.immediate_size);
    return put(in.opcode_reg(), ConstantWord::Of(value));
  }
  if (!in.rex_w()) return {};
  const unsigned extension = in.modrm >> 3 & 7;
  const bool in_memory = in.modrm_is_memory();
  const auto immediate = [&] { return SignedAt(bytes, in.immediate_offset, in.immediate_size); };
  switch (in.opcode) {
    case 0x8d: {  // lea
      if (in.base == kRip && !in.address_size_prefix)
        return put(in.reg(), ConstantWord::Of(LoadedWord(in, bytes, rip).value));
      if (in.base >= 16 || in.index != kNoRegister || in.address_size_prefix) return {};
      return put(in.reg(), General(in.base).Plus(
                               SignedAt(bytes, in.displacement_offset, in.displacement_size)));
    }
    case 0x8b:  // mov
      return put(in.reg(), in_memory ? LoadedWord(in, bytes, rip) : General(in.rm()));
    case 0x89:
      return put(in.rm(), General(in.reg()));
    case 0xc7:
      return put(in.rm(), ConstantWord::Of(immediate()));
    case 0x81:  // add, sub
    case 0x83:
      if (in_memory || (extension != 0 && extension != 5)) return {};
      return put(in.rm(), General(in.rm()).Plus(extension == 0 ? immediate() : 0 - immediate()));
    case 0x05:  // add $imm, %rax
      return put(kRax, General(kRax).Plus(immediate()));
    default:
      return {};
  }
}

ConstantWords ConstantRegisters::FollowVector(const Instruction& in,
                                              std::span<const std::uint8_t> bytes,
                                              std::uint64_t rip) {
  const bool vex = in.encoding == Encoding::kVex;
  // Longer ones are of no use here.
  if (!in.has_modrm || in.map == kMapOneByte || (vex && in.vector_length > 16)) return {};
  const bool in_memory = in.modrm_is_memory();
  const VectorWords from = Vector(in.rm());
  // What stays of the destination: its own bytes, or those of a third operand.
  const VectorWords kept = Vector(vex ? in.vvvv : in.reg());
  const auto low = [&] { return in_memory ? LoadedWord(in, bytes, rip) : from[0]; };
  const auto put = [&](const ConstantWord& first, const ConstantWord& second) -> ConstantWords {
    SetVector(in.reg(), {first, second});
    return {2, {first, second}};
  };
  if (IsVectorMap(in, kMap0F3A) && CodeOf(in) == Code(0x66, 0x22) && in.rex_w()) {  // pinsrq
    const ConstantWord word = in_memory ? low() : General(in.rm());
    const bool second = (bytes[in.immediate_offset] & 1) != 0;
    return put(second ? kept[0] : word, second ? word : kept[1]);
  }
  if (!IsVectorMap(in, kMap0F)) return {};
  switch (CodeOf(in)) {
    case Code(0x66, 0x6e):  // movq from a general register
      if (!in.rex_w()) return {};
      return put(in_memory ? low() : General(in.rm()), ConstantWord::Of(0));
    case Code(0xf3, 0x7e):  // movq
      return put(low(), ConstantWord::Of(0));
    case Code(0x66, 0x6c):  // punpcklqdq
    case Code(0, 0x16):     // movhps, movlhps
      return put(kept[0], low());
    case Code(0, 0x10):  // movups, movaps, movupd, movapd, movdqa, movdqu
    case Code(0, 0x28):
    case Code(0x66, 0x10):
    case Code(0x66, 0x28):
    case Code(0x66, 0x6f):
    case Code(0xf3, 0x6f):
      return in_memory ? put(low(), LoadedWord(in, bytes, rip, 8)) : put(from[0], from[1]);
    default:
      return {};
  }
}

std::uint64_t NamedTables::FindPointer(const ConstantWord& word) const {
  std::uint64_t value = word.value;
  if (word.kind == ConstantWord::Kind::kLoaded) {
    if (!pointers_.read_word(word.value, value)) return 0;
    value += word.added;
  }
  return pointers_.is_one(value) ? value : 0;
}

std::uint64_t NamedTables::PointerOf(const ConstantWord& word) {
  constexpr unsigned kKnownBits = 12;
  const bool may_be_one = word.kind == ConstantWord::Kind::kLoaded ||
                          (word.kind == ConstantWord::Kind::kValue && MayPointToTable(word.value));
  if (!may_be_one) return 0;
  known_.resize(1u << kKnownBits);
  const std::uint64_t hash = (word.value + 7 * word.added) * 0x9e3779b97f4a7c15;
  Known& known = known_[hash >> (64 - kKnownBits)];
  if (known.word != word) known = {word, FindPointer(word)};
  return known.pointer;
}

void NamedTables::Add(const ConstantWords& words) {
  // More are compared in turn with what is stored than a function is likely to have.
  constexpr std::size_t kMost = 8;
  for (unsigned i = 0; i < words.count && found_.size() < kMost; ++i) {
    const std::uint64_t pointer = PointerOf(words.words[i]);
    if (pointer != 0 && std::find(found_.begin(), found_.end(), pointer) == found_.end())
      found_.push_back(pointer);
  }
}

void NamedTables::AddBefore(const CodeReader& read, std::uint64_t rip) {
  constexpr std::size_t kBefore = 1024;  // bytes
  // From where a constant is made to where it is what is stored.
  constexpr unsigned kFollowed = 6;  // instructions
  std::array<std::uint8_t, kBefore> code{};
  const std::size_t before = std::min<std::uint64_t>(kBefore, rip);
  // Other code may begin, or nothing be there, before this.
  constexpr std::size_t kStep = 256;
  std::size_t size = 0;
  while (size < before) {
    const std::size_t part = std::min(kStep, before - size);
    const std::size_t at = before - size - part;
    if (read(rip - size - part, code.data() + at, part) != part) break;
    size += part;
  }
  const std::span bytes = std::span(code).subspan(before - size, size);
  for (std::size_t first = size; first-- > 0;) {
    if (size - first < 7 || !MayMakeConstant(bytes.data() + first)) continue;
    ConstantRegisters registers;
    std::size_t at = first;
    for (unsigned i = 0; i < kFollowed && at < size; ++i) {
      const auto in = Decode(bytes.subspan(at), rip - size + at);
      if (!in || in->branch != Branch::kNone) break;
      Add(registers.Follow(*in, bytes.subspan(at), rip - size + at, MaybeWrittenRegisters(*in)));
      at += in->length;
    }
  }
}

bool NamedTables::MayHold(const ConstantWords& words) {
  for (unsigned i = 0; i < words.count; ++i) {
    if (words.words[i].kind == ConstantWord::Kind::kUnknown) continue;
    const std::uint64_t pointer = PointerOf(words.words[i]);
    if (pointer == 0 || std::find(found_.begin(), found_.end(), pointer) == found_.end())
      return false;
  }
  return words.count != 0;
}

}  // namespace trapline
