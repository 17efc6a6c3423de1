#include "translator/opcode_table.h"

#include <array>
#include <vector>

#include "translator/instruction.h"

namespace trapline {
namespace {

using enum Effect;
using enum Special;

// A row that is written as a sentence: opcodes, encodings, prefixes, effect, then what is unusual.
struct Row : OpcodeRow {
  constexpr Row(int opcode, std::uint8_t encoding_set, std::uint8_t prefix_set, Effect what,
                Size bytes)
      : Row(opcode, opcode, encoding_set, prefix_set, what, bytes) {}
  constexpr Row(int first_opcode, int last_opcode, std::uint8_t encoding_set,
                std::uint8_t prefix_set, Effect what, Size bytes) {
    first = static_cast<std::uint8_t>(first_opcode);
    last = static_cast<std::uint8_t>(last_opcode);
    encodings = encoding_set;
    prefixes = prefix_set;
    effect = what;
    size = bytes;
  }
  // EVEX: lanes of this size for masking and broadcast, or for masking only.
  constexpr Row Broadcast(Lane of) const {
    Row row = Masked(of);
    row.broadcast = true;
    return row;
  }
  constexpr Row Masked(Lane of) const {
    Row row = *this;
    row.lane = of;
    return row;
  }
  constexpr Row With(Masking how) const {
    Row row = *this;
    row.masking = how;
    return row;
  }
  constexpr Row Imm(Immediate kind = Immediate::k8) const {
    Row row = *this;
    row.immediate = kind;
    return row;
  }
  constexpr Row Also(Special what) const {
    Row row = *this;
    row.special = what;
    return row;
  }
  constexpr Row Is(Branch kind) const {
    Row row = *this;
    row.branch = static_cast<std::uint8_t>(kind);
    return row;
  }
  // Only these values of ModRM.reg.
  template <typename... Values>
  constexpr Row Reg(Values... values) const {
    Row row = *this;
    row.registers = static_cast<std::uint8_t>(((1u << values) | ...));
    return row;
  }
  constexpr Row W(int value) const {
    Row row = *this;
    row.w_values = static_cast<std::uint8_t>(1u << value);
    return row;
  }
  constexpr Row NoModrm() const {
    Row row = *this;
    row.modrm = false;
    return row;
  }
  constexpr Row MemoryOnly() const {
    Row row = *this;
    row.register_form = false;
    return row;
  }
  constexpr Row RegisterOnly() const {
    Row row = *this;
    row.memory_form = false;
    return row;
  }
};

constexpr Size Bytes(unsigned count) { return static_cast<Size>(count); }

constexpr std::uint8_t kS = kSse;
constexpr std::uint8_t kV = kVexed;
constexpr std::uint8_t kE = kEvexed;
constexpr std::uint8_t kSv = kSse | kVexed;
constexpr std::uint8_t kSve = kSse | kVexed | kEvexed;
constexpr std::uint8_t kVe = kVexed | kEvexed;
constexpr std::uint8_t kAny = kAnyPrefix;
constexpr std::uint8_t kNp66 = kNp | k66;
constexpr std::uint8_t kF3F2 = kF3 | kF2;

constexpr Size kZero = Size::kZero;
constexpr Size k1 = Bytes(1);
constexpr Size k2 = Bytes(2);
constexpr Size k4 = Bytes(4);
constexpr Size k8 = Bytes(8);
constexpr Size k10 = Bytes(10);
constexpr Size k16 = Bytes(16);
constexpr Size k32 = Bytes(32);
constexpr Size k64 = Bytes(64);
constexpr Size kOp = Size::kOperand;
constexpr Size kOpNo16 = Size::kOperandNo16;
constexpr Size kStack = Size::kStackOperand;
constexpr Size kVec = Size::kVector;
constexpr Size kHalf = Size::kVectorHalf;
constexpr Size kQuarter = Size::kVectorQuarter;
constexpr Size kEighth = Size::kVectorEighth;
constexpr Size kFloat = Size::kFloat;

// Opcodes without memory operand and without ModRM byte.
constexpr Row Plain(int first, int last) {
  return Row(first, last, kS, kAny, kNothing, kZero).NoModrm();
}
constexpr Row Plain(int opcode) { return Plain(opcode, opcode); }
// A general instruction: bytes if the opcode is even, operands of kOperand if it is odd.
constexpr Row ByteForm(int opcode, Effect effect) { return {opcode, kS, kAny, effect, k1}; }
constexpr Row OperandForm(int opcode, Effect effect) { return {opcode, kS, kAny, effect, kOp}; }

// add, or, adc, sbb, and, sub, xor, cmp: opcodes base to base + 5.
#define TRAPLINE_ARITHMETIC(base, effect)                                               \
  ByteForm(base, effect), OperandForm((base) + 1, effect), ByteForm((base) + 2, kRead), \
      OperandForm((base) + 3, kRead), Plain((base) + 4).Imm(),                          \
      Plain((base) + 5).Imm(Immediate::kZ)

constexpr OpcodeRow kOneByte[] = {
    TRAPLINE_ARITHMETIC(0x00, kReadWrite),
    TRAPLINE_ARITHMETIC(0x08, kReadWrite),
    TRAPLINE_ARITHMETIC(0x10, kReadWrite),
    TRAPLINE_ARITHMETIC(0x18, kReadWrite),
    TRAPLINE_ARITHMETIC(0x20, kReadWrite),
    TRAPLINE_ARITHMETIC(0x28, kReadWrite),
    TRAPLINE_ARITHMETIC(0x30, kReadWrite),
    TRAPLINE_ARITHMETIC(0x38, kRead),
    Plain(0x50, 0x57).Also(kPush),
    Plain(0x58, 0x5f).Also(kPop),
    Row(0x63, kS, kAny, kRead, k4),
    Plain(0x68).Imm(Immediate::kZ).Also(kPush),
    OperandForm(0x69, kRead).Imm(Immediate::kZ),
    Plain(0x6a).Imm().Also(kPush),
    OperandForm(0x6b, kRead).Imm(),
    Plain(0x6c, 0x6d).Also(kInString),
    Plain(0x6e, 0x6f).Also(kOutString),
    Plain(0x70, 0x7f).Imm(Immediate::kRelative8).Is(Branch::kConditional),
    ByteForm(0x80, kReadWrite).Imm().Reg(0, 1, 2, 3, 4, 5, 6),
    ByteForm(0x80, kRead).Imm().Reg(7),
    OperandForm(0x81, kReadWrite).Imm(Immediate::kZ).Reg(0, 1, 2, 3, 4, 5, 6),
    OperandForm(0x81, kRead).Imm(Immediate::kZ).Reg(7),
    OperandForm(0x83, kReadWrite).Imm().Reg(0, 1, 2, 3, 4, 5, 6),
    OperandForm(0x83, kRead).Imm().Reg(7),
    ByteForm(0x84, kRead),
    OperandForm(0x85, kRead),
    ByteForm(0x86, kReadWrite),  // xchg: Decode makes it atomic
    OperandForm(0x87, kReadWrite),
    ByteForm(0x88, kWrite),
    OperandForm(0x89, kWrite),
    ByteForm(0x8a, kRead),
    OperandForm(0x8b, kRead),
    Row(0x8c, kS, kAny, kWrite, k2).Reg(0, 1, 2, 3, 4, 5),
    Row(0x8d, kS, kAny, kNothing, kZero).MemoryOnly(),  // lea
    Row(0x8e, kS, kAny, kRead, k2).Reg(0, 2, 3, 4, 5),
    Row(0x8f, kS, kAny, kWrite, kStack).Reg(0).Also(kPop),
    Plain(0x90, 0x99),
    Plain(0x9b),
    Plain(0x9c).Also(kPush),
    Plain(0x9d).Also(kPop),
    Plain(0x9e, 0x9f),
    Row(0xa0, kS, kAny, kRead, k1).NoModrm().Imm(Immediate::kOffset).Also(kOffset),
    Row(0xa1, kS, kAny, kRead, kOp).NoModrm().Imm(Immediate::kOffset).Also(kOffset),
    Row(0xa2, kS, kAny, kWrite, k1).NoModrm().Imm(Immediate::kOffset).Also(kOffset),
    Row(0xa3, kS, kAny, kWrite, kOp).NoModrm().Imm(Immediate::kOffset).Also(kOffset),
    Plain(0xa4, 0xa5).Also(kMoveString),
    Plain(0xa6, 0xa7).Also(kCompareString),
    Plain(0xa8).Imm(),
    Plain(0xa9).Imm(Immediate::kZ),
    Plain(0xaa, 0xab).Also(kStoreString),
    Plain(0xac, 0xad).Also(kLoadString),
    Plain(0xae, 0xaf).Also(kScanString),
    Plain(0xb0, 0xb7).Imm(),
    Plain(0xb8, 0xbf).Imm(Immediate::kV),
    ByteForm(0xc0, kReadWrite).Imm(),
    OperandForm(0xc1, kReadWrite).Imm(),
    Plain(0xc2).Imm(Immediate::k16).Also(kReturn).Is(Branch::kReturn),
    Plain(0xc3).Also(kReturn).Is(Branch::kReturn),
    ByteForm(0xc6, kWrite).Imm().Reg(0),
    ByteForm(0xc6, kNothing).Imm().Reg(7).RegisterOnly().Is(Branch::kOther),  // xabort
    OperandForm(0xc7, kWrite).Imm(Immediate::kZ).Reg(0),
    OperandForm(0xc7, kNothing)
        .Imm(Immediate::kRelativeZ)
        .Reg(7)
        .RegisterOnly()
        .Is(Branch::kConditional),  // xbegin
    Plain(0xc8).Imm(Immediate::k16And8).Also(kEnter),
    Plain(0xc9).Also(kLeave),
    Plain(0xca).Imm(Immediate::k16).Also(kFarReturn).Is(Branch::kOther),
    Plain(0xcb).Also(kFarReturn).Is(Branch::kOther),
    Plain(0xcc).Is(Branch::kOther),
    Plain(0xcd).Imm().Is(Branch::kOther),
    Plain(0xcf).Also(kInterruptReturn).Is(Branch::kOther),
    ByteForm(0xd0, kReadWrite),
    OperandForm(0xd1, kReadWrite),
    ByteForm(0xd2, kReadWrite),
    OperandForm(0xd3, kReadWrite),
    Plain(0xd7).Also(kXlat),
    // x87. Register forms touch no memory.
    Row(0xd8, kS, kAny, kRead, k4),
    Row(0xd9, kS, kAny, kRead, k4).Reg(0).MemoryOnly(),
    Row(0xd9, kS, kAny, kWrite, k4).Reg(2, 3).MemoryOnly(),
    Row(0xd9, kS, kAny, kRead, Size::kEnvironment).Reg(4).MemoryOnly(),
    Row(0xd9, kS, kAny, kRead, k2).Reg(5).MemoryOnly(),
    Row(0xd9, kS, kAny, kWrite, Size::kEnvironment).Reg(6).MemoryOnly(),
    Row(0xd9, kS, kAny, kWrite, k2).Reg(7).MemoryOnly(),
    Row(0xda, kS, kAny, kRead, k4),
    Row(0xdb, kS, kAny, kRead, k4).Reg(0).MemoryOnly(),
    Row(0xdb, kS, kAny, kWrite, k4).Reg(1, 2, 3).MemoryOnly(),
    Row(0xdb, kS, kAny, kRead, k10).Reg(5).MemoryOnly(),
    Row(0xdb, kS, kAny, kWrite, k10).Reg(7).MemoryOnly(),
    Row(0xdc, kS, kAny, kRead, k8),
    Row(0xdd, kS, kAny, kRead, k8).Reg(0).MemoryOnly(),
    Row(0xdd, kS, kAny, kWrite, k8).Reg(1, 2, 3).MemoryOnly(),
    Row(0xdd, kS, kAny, kRead, Size::kX87State).Reg(4).MemoryOnly(),
    Row(0xdd, kS, kAny, kWrite, Size::kX87State).Reg(6).MemoryOnly(),
    Row(0xdd, kS, kAny, kWrite, k2).Reg(7).MemoryOnly(),
    Row(0xde, kS, kAny, kRead, k2),
    Row(0xdf, kS, kAny, kRead, k2).Reg(0).MemoryOnly(),
    Row(0xdf, kS, kAny, kWrite, k2).Reg(1, 2, 3).MemoryOnly(),
    Row(0xdf, kS, kAny, kRead, k10).Reg(4).MemoryOnly(),
    Row(0xdf, kS, kAny, kRead, k8).Reg(5).MemoryOnly(),
    Row(0xdf, kS, kAny, kWrite, k10).Reg(6).MemoryOnly(),
    Row(0xdf, kS, kAny, kWrite, k8).Reg(7).MemoryOnly(),
    Row(0xd9, 0xdf, kS, kAny, kNothing, kZero).RegisterOnly(),
    Plain(0xe0, 0xe3).Imm(Immediate::kRelative8).Is(Branch::kConditional),
    Plain(0xe4, 0xe7).Imm(),
    Plain(0xe8).Imm(Immediate::kRelative32).Also(kCall).Is(Branch::kCall),
    Plain(0xe9).Imm(Immediate::kRelative32).Is(Branch::kJump),
    Plain(0xeb).Imm(Immediate::kRelative8).Is(Branch::kJump),
    Plain(0xec, 0xef),
    Plain(0xf1).Is(Branch::kOther),
    Plain(0xf4).Is(Branch::kOther),
    Plain(0xf5),
    ByteForm(0xf6, kRead).Imm().Reg(0, 1),
    ByteForm(0xf6, kReadWrite).Reg(2, 3),
    ByteForm(0xf6, kRead).Reg(4, 5, 6, 7),
    OperandForm(0xf7, kRead).Imm(Immediate::kZ).Reg(0, 1),
    OperandForm(0xf7, kReadWrite).Reg(2, 3),
    OperandForm(0xf7, kRead).Reg(4, 5, 6, 7),
    Plain(0xf8, 0xfd),
    ByteForm(0xfe, kReadWrite).Reg(0, 1),
    OperandForm(0xff, kReadWrite).Reg(0, 1),
    Row(0xff, kS, kAny, kRead, k8).Reg(2).Also(kCall).Is(Branch::kIndirectCall),
    Row(0xff, kS, kAny, kRead, Size::kFarPointer)
        .Reg(3)
        .MemoryOnly()
        .Also(kFarCall)
        .Is(Branch::kOther),
    Row(0xff, kS, kAny, kRead, k8).Reg(4).Is(Branch::kIndirectJump),
    Row(0xff, kS, kAny, kRead, Size::kFarPointer).Reg(5).MemoryOnly().Is(Branch::kOther),
    Row(0xff, kS, kAny, kRead, kStack).Reg(6).Also(kPush),
};

constexpr OpcodeRow k0F[] = {
    Row(0x00, kS, kAny, kWrite, k2).Reg(0, 1), Row(0x00, kS, kAny, kRead, k2).Reg(2, 3, 4, 5),
    Row(0x01, kS, kAny, kWrite, k10).Reg(0, 1).MemoryOnly(),
    Row(0x01, kS, kAny, kRead, k10).Reg(2, 3).MemoryOnly(), Row(0x01, kS, kAny, kWrite, k2).Reg(4),
    Row(0x01, kS, kF3, kReadWrite, k8).Reg(5).MemoryOnly(),  // rstorssp
    Row(0x01, kS, kAny, kRead, k2).Reg(6),
    Row(0x01, kS, kAny, kNothing, kZero).Reg(7).MemoryOnly(),  // invlpg
    // The register forms of 0F 01 are instructions of their own; Decode picks those that touch
    // memory.
    Row(0x01, kS, kAny, kNothing, kZero).RegisterOnly(), Row(0x02, 0x03, kS, kAny, kRead, k2),
    Plain(0x05).Is(Branch::kSyscall), Plain(0x06), Plain(0x07).Is(Branch::kOther),
    Plain(0x08, 0x09), Plain(0x0b).Is(Branch::kOther),
    Row(0x0d, kS, kAny, kNothing, kZero),  // prefetch, prefetchw
    Plain(0x0e), Row(0x10, kSve, kAny, kRead, kFloat).Masked(Lane::kPrefix),
    Row(0x11, kSve, kAny, kWrite, kFloat).Masked(Lane::kPrefix), Row(0x12, kSve, kNp66, kRead, k8),
    Row(0x12, kSve, kF3, kRead, kVec), Row(0x12, kSve, kF2, kRead, Size::kDuplicate),
    Row(0x13, kSve, kNp66, kWrite, k8).MemoryOnly(),
    Row(0x14, 0x15, kSve, kNp66, kRead, kVec).Broadcast(Lane::kPrefix).With(Masking::kUnmasked),
    Row(0x16, kSve, kNp66, kRead, k8), Row(0x16, kSve, kF3, kRead, kVec),
    Row(0x17, kSve, kNp66, kWrite, k8).MemoryOnly(),
    Row(0x18, 0x1f, kS, kAny, kNothing, kZero),  // prefetches, hints, nop
    Row(0x20, 0x23, kS, kAny, kNothing, kZero),
    Row(0x28, kSve, kNp66, kRead, kVec).Masked(Lane::kPrefix),
    Row(0x29, kSve, kNp66, kWrite, kVec).Masked(Lane::kPrefix), Row(0x2a, kS, kNp66, kRead, k8),
    Row(0x2a, kSve, kF3F2, kRead, kOpNo16), Row(0x2b, kSve, kNp66, kWrite, kVec).MemoryOnly(),
    Row(0x2b, kS, kF3F2, kWrite, kFloat).MemoryOnly(), Row(0x2c, 0x2d, kS, kNp, kRead, k8),
    Row(0x2c, 0x2d, kS, k66, kRead, k16), Row(0x2c, 0x2d, kSve, kF3F2, kRead, kFloat),
    Row(0x2e, 0x2f, kSve, kNp, kRead, k4), Row(0x2e, 0x2f, kSve, k66, kRead, k8), Plain(0x30, 0x33),
    Plain(0x34).Is(Branch::kSyscall), Plain(0x35).Is(Branch::kOther), Plain(0x37),
    Row(0x40, 0x4f, kS, kAny, kRead,
        kOp),  // cmov reads whether or not it moves (IsConditionalMove)
    Row(0x41, 0x47, kV, kNp66, kNothing, kZero).RegisterOnly(),
    Row(0x4a, 0x4b, kV, kNp66, kNothing, kZero).RegisterOnly(),
    Row(0x50, kSv, kNp66, kNothing, kZero).RegisterOnly(),
    Row(0x51, kSve, kAny, kRead, kFloat).Broadcast(Lane::kPrefix),
    Row(0x52, 0x53, kSv, kNp | kF3, kRead, kFloat),
    Row(0x54, 0x57, kSve, kNp66, kRead, kVec).Broadcast(Lane::kPrefix),
    Row(0x58, 0x59, kSve, kAny, kRead, kFloat).Broadcast(Lane::kPrefix),
    Row(0x5a, kSve, kNp, kRead, kHalf).Broadcast(Lane::k4),
    Row(0x5a, kSve, k66 | kF3F2, kRead, kFloat).Broadcast(Lane::kPrefix),
    Row(0x5b, kSve, kNp, kRead, kVec).Broadcast(Lane::kW48),
    Row(0x5b, kSve, k66 | kF3, kRead, kVec).Broadcast(Lane::k4),
    Row(0x5c, 0x5f, kSve, kAny, kRead, kFloat).Broadcast(Lane::kPrefix),
    Row(0x60, 0x62, kS, kNp, kRead, k4), Row(0x63, 0x6b, kS, kNp, kRead, k8),
    Row(0x60, 0x6d, kSv, k66, kRead, kVec), Row(0x60, 0x61, kE, k66, kRead, kVec),
    Row(0x62, kE, k66, kRead, kVec).Broadcast(Lane::k4).With(Masking::kUnmasked),
    Row(0x63, kE, k66, kRead, kVec), Row(0x64, kE, k66, kRead, kVec).Masked(Lane::k1),
    Row(0x65, kE, k66, kRead, kVec).Masked(Lane::k2),
    Row(0x66, kE, k66, kRead, kVec).Broadcast(Lane::k4), Row(0x67, 0x69, kE, k66, kRead, kVec),
    Row(0x6a, 0x6b, kE, k66, kRead, kVec).Broadcast(Lane::k4).With(Masking::kUnmasked),
    Row(0x6c, 0x6d, kE, k66, kRead, kVec).Broadcast(Lane::k8).With(Masking::kUnmasked),
    Row(0x6e, kS, kNp, kRead, kOpNo16), Row(0x6e, kSve, k66, kRead, kOpNo16),
    Row(0x6f, kS, kNp, kRead, k8), Row(0x6f, kSve, k66 | kF3, kRead, kVec).Masked(Lane::kW48),
    Row(0x6f, kE, kF2, kRead, kVec).Masked(Lane::kW12), Row(0x70, kS, kNp, kRead, k8).Imm(),
    Row(0x70, kSv, k66 | kF3F2, kRead, kVec).Imm(),
    Row(0x70, kE, k66, kRead, kVec).Broadcast(Lane::k4).With(Masking::kUnmasked).Imm(),
    Row(0x70, kE, kF3F2, kRead, kVec).Imm(),
    Row(0x71, 0x73, kSv, kNp66, kNothing, kZero).Imm().RegisterOnly(),
    Row(0x71, kE, k66, kRead, kVec).Masked(Lane::k2).Imm(),
    Row(0x72, kE, k66, kRead, kVec).Broadcast(Lane::kW48).Imm(),
    Row(0x73, kE, k66, kRead, kVec).Broadcast(Lane::k8).Imm().Reg(2, 6),
    Row(0x73, kE, k66, kRead, kVec).Imm().Reg(3, 7), Row(0x74, 0x76, kS, kNp, kRead, k8),
    Row(0x74, 0x76, kSv, k66, kRead, kVec), Row(0x74, kE, k66, kRead, kVec).Masked(Lane::k1),
    Row(0x75, kE, k66, kRead, kVec).Masked(Lane::k2),
    Row(0x76, kE, k66, kRead, kVec).Broadcast(Lane::k4),
    Row(0x77, kSv, kNp, kNothing, kZero).NoModrm(), Row(0x78, kS, kNp, kWrite, k8),  // vmread
    Row(0x79, kS, kNp, kRead, k8),                                                   // vmwrite
    Row(0x78, kS, k66 | kF2, kNothing, kZero).RegisterOnly().Imm(Immediate::k8And8),
    Row(0x79, kS, k66 | kF2, kNothing, kZero).RegisterOnly(),
    Row(0x78, 0x79, kE, kNp, kRead, kVec).Broadcast(Lane::kW48),
    Row(0x78, 0x79, kE, k66, kRead, kHalf).Broadcast(Lane::k4).W(0),
    Row(0x78, 0x79, kE, k66, kRead, kVec).Broadcast(Lane::k8).W(1),
    Row(0x78, 0x79, kE, kF3F2, kRead, kFloat),
    Row(0x7a, 0x7b, kE, k66, kRead, kHalf).Broadcast(Lane::k4).W(0),
    Row(0x7a, 0x7b, kE, k66, kRead, kVec).Broadcast(Lane::k8).W(1),
    Row(0x7a, kE, kF3, kRead, kHalf).Broadcast(Lane::k4).W(0),
    Row(0x7a, kE, kF3, kRead, kVec).Broadcast(Lane::k8).W(1),
    Row(0x7a, kE, kF2, kRead, kVec).Broadcast(Lane::kW48), Row(0x7b, kE, kF3F2, kRead, kOpNo16),
    Row(0x7c, 0x7d, kSv, k66 | kF2, kRead, kVec), Row(0x7e, kS, kNp, kWrite, kOpNo16),
    Row(0x7e, kSve, k66, kWrite, kOpNo16), Row(0x7e, kSve, kF3, kRead, k8),
    Row(0x7f, kS, kNp, kWrite, k8), Row(0x7f, kSve, k66 | kF3, kWrite, kVec).Masked(Lane::kW48),
    Row(0x7f, kE, kF2, kWrite, kVec).Masked(Lane::kW12),
    Plain(0x80, 0x8f).Imm(Immediate::kRelative32).Is(Branch::kConditional),
    Row(0x90, 0x9f, kS, kAny, kWrite, k1), Row(0x90, kV, kNp66, kRead, Size::kKmov),
    Row(0x91, kV, kNp66, kWrite, Size::kKmov).MemoryOnly(),
    Row(0x92, 0x93, kV, kNp66 | kF2, kNothing, kZero).RegisterOnly(),
    Row(0x98, 0x99, kV, kNp66, kNothing, kZero).RegisterOnly(), Plain(0xa0).Also(kPush),
    Plain(0xa1).Also(kPop), Plain(0xa2), OperandForm(0xa3, kRead).Also(kBitString),
    OperandForm(0xa4, kReadWrite).Imm(), OperandForm(0xa5, kReadWrite), Plain(0xa8).Also(kPush),
    Plain(0xa9).Also(kPop), Plain(0xaa).Is(Branch::kOther),
    OperandForm(0xab, kReadWrite).Also(kBitString), OperandForm(0xac, kReadWrite).Imm(),
    OperandForm(0xad, kReadWrite), Row(0xae, kS, kNp, kWrite, Bytes(512)).Reg(0).MemoryOnly(),
    Row(0xae, kS, kNp, kRead, Bytes(512)).Reg(1).MemoryOnly(),
    Row(0xae, kSv, kNp, kRead, k4).Reg(2).MemoryOnly(),
    Row(0xae, kSv, kNp, kWrite, k4).Reg(3).MemoryOnly(),
    Row(0xae, kS, kNp, kWrite, kZero).Reg(4, 6).MemoryOnly().Also(kXsave),
    Row(0xae, kS, kNp, kRead, kZero).Reg(5).MemoryOnly().Also(kXsave),
    Row(0xae, kS, kF3, kRead, kOpNo16).Reg(4),                  // ptwrite
    Row(0xae, kS, kF3, kReadWrite, k8).Reg(6).MemoryOnly(),     // clrssbsy
    Row(0xae, kS, kNp66, kNothing, kZero).Reg(7).MemoryOnly(),  // clflush, clflushopt
    Row(0xae, kS, k66, kNothing, kZero).Reg(6).MemoryOnly(),    // clwb
    Row(0xae, kS, kAny, kNothing, kZero).RegisterOnly(),        // fences, rdfsbase, umwait ...
    OperandForm(0xaf, kRead), ByteForm(0xb0, kReadWrite), OperandForm(0xb1, kReadWrite),
    Row(0xb2, kS, kAny, kRead, Size::kFarPointer).MemoryOnly(),
    OperandForm(0xb3, kReadWrite).Also(kBitString),
    Row(0xb4, 0xb5, kS, kAny, kRead, Size::kFarPointer).MemoryOnly(),
    Row(0xb6, kS, kAny, kRead, k1), Row(0xb7, kS, kAny, kRead, k2), Row(0xb8, kS, kF3, kRead, kOp),
    Row(0xb9, kS, kAny, kNothing, kZero).Is(Branch::kOther),  // ud1
    OperandForm(0xba, kRead).Imm().Reg(4), OperandForm(0xba, kReadWrite).Imm().Reg(5, 6, 7),
    OperandForm(0xbb, kReadWrite).Also(kBitString), Row(0xbc, 0xbd, kS, kAny, kRead, kOp),
    Row(0xbe, kS, kAny, kRead, k1), Row(0xbf, kS, kAny, kRead, k2), ByteForm(0xc0, kReadWrite),
    OperandForm(0xc1, kReadWrite),
    Row(0xc2, kSve, kAny, kRead, kFloat).Broadcast(Lane::kPrefix).Imm(),
    Row(0xc3, kS, kNp, kWrite, kOpNo16).MemoryOnly(),  // movnti
    Row(0xc4, kS, kNp, kRead, k2).Imm(), Row(0xc4, kSve, k66, kRead, k2).Imm(),
    Row(0xc5, kS, kNp, kNothing, kZero).RegisterOnly().Imm(),
    Row(0xc5, kSve, k66, kNothing, kZero).RegisterOnly().Imm(),
    Row(0xc6, kSve, kNp66, kRead, kVec).Broadcast(Lane::kPrefix).With(Masking::kUnmasked).Imm(),
    Row(0xc7, kS, kAny, kReadWrite, Size::kTwiceY).Reg(1).MemoryOnly(),
    Row(0xc7, kS, kNp, kRead, kZero).Reg(3).MemoryOnly().Also(kXsave),  // xrstors: compacted or not
    Row(0xc7, kS, kNp, kWrite, kZero).Reg(4, 5).MemoryOnly().Also(kXsaveCompact),  // xsavec, xsaves
    Row(0xc7, kS, kNp | kF3, kRead, k8).Reg(6).MemoryOnly(),                       // vmptrld, vmxon
    Row(0xc7, kS, k66, kWrite, k8).Reg(6).MemoryOnly(),                            // vmclear
    Row(0xc7, kS, kNp, kWrite, k8).Reg(7).MemoryOnly(),                            // vmptrst
    Row(0xc7, kS, kAny, kNothing, kZero).Reg(6, 7).RegisterOnly(),  // rdrand, rdseed, rdpid
    Plain(0xc8, 0xcf), Row(0xd0, kSv, k66 | kF2, kRead, kVec), Row(0xd1, 0xd5, kS, kNp, kRead, k8),
    Row(0xd1, 0xd3, kVe, k66, kRead, k16),  // the shift count is 128 bits at any vector length
    Row(0xd4, 0xd5, kV, k66, kRead, kVec), Row(0xd1, 0xd5, kS, k66, kRead, kVec),
    Row(0xd4, kE, k66, kRead, kVec).Broadcast(Lane::k8),
    Row(0xd5, kE, k66, kRead, kVec).Masked(Lane::k2), Row(0xd6, kSve, k66, kWrite, k8),
    Row(0xd6, kS, kF3F2, kNothing, kZero).RegisterOnly(),
    Row(0xd7, kS, kNp, kNothing, kZero).RegisterOnly(),
    Row(0xd7, kSv, k66, kNothing, kZero).RegisterOnly(), Row(0xe1, 0xe2, kVe, k66, kRead, k16),
    Row(0xe6, kSve, kF3, kRead, kHalf).Broadcast(Lane::k4).W(0),
    Row(0xe6, kSv, kF3, kRead, kHalf).W(1),
    Row(0xe6, kE, kF3, kRead, kVec).Broadcast(Lane::k8).W(1),
    Row(0xe6, kSve, k66 | kF2, kRead, kVec).Broadcast(Lane::k8),
    Row(0xe7, kS, kNp, kWrite, k8).MemoryOnly(), Row(0xe7, kSve, k66, kWrite, kVec).MemoryOnly(),
    Row(0xd8, 0xef, kS, kNp, kRead, k8), Row(0xd8, 0xef, kSv, k66, kRead, kVec),
    Row(0xd8, kE, k66, kRead, kVec).Masked(Lane::k1),
    Row(0xd9, kE, k66, kRead, kVec).Masked(Lane::k2),
    Row(0xda, kE, k66, kRead, kVec).Masked(Lane::k1),
    Row(0xdb, kE, k66, kRead, kVec).Broadcast(Lane::kW48),
    Row(0xdc, kE, k66, kRead, kVec).Masked(Lane::k1),
    Row(0xdd, kE, k66, kRead, kVec).Masked(Lane::k2),
    Row(0xde, kE, k66, kRead, kVec).Masked(Lane::k1),
    Row(0xdf, kE, k66, kRead, kVec).Broadcast(Lane::kW48),
    Row(0xe0, kE, k66, kRead, kVec).Masked(Lane::k1),
    Row(0xe3, 0xe5, kE, k66, kRead, kVec).Masked(Lane::k2),
    Row(0xe8, kE, k66, kRead, kVec).Masked(Lane::k1),
    Row(0xe9, 0xea, kE, k66, kRead, kVec).Masked(Lane::k2),
    Row(0xeb, kE, k66, kRead, kVec).Broadcast(Lane::kW48),
    Row(0xec, kE, k66, kRead, kVec).Masked(Lane::k1),
    Row(0xed, 0xee, kE, k66, kRead, kVec).Masked(Lane::k2),
    Row(0xef, kE, k66, kRead, kVec).Broadcast(Lane::kW48),
    Row(0xf0, kSv, kF2, kRead, kVec).MemoryOnly(),
    Row(0xf7, kS, kNp66, kWrite, kZero).RegisterOnly().Also(kMaskedMove),
    Row(0xf7, kV, k66, kWrite, kZero).RegisterOnly().Also(kMaskedMove),
    Row(0xf1, 0xf3, kVe, k66, kRead, k16), Row(0xf1, 0xfe, kS, kNp, kRead, k8),
    Row(0xf1, 0xfe, kSv, k66, kRead, kVec), Row(0xf4, kE, k66, kRead, kVec).Broadcast(Lane::k8),
    Row(0xf5, kE, k66, kRead, kVec), Row(0xf6, kE, k66, kRead, kVec),
    Row(0xf8, kE, k66, kRead, kVec).Masked(Lane::k1),
    Row(0xf9, kE, k66, kRead, kVec).Masked(Lane::k2),
    Row(0xfa, kE, k66, kRead, kVec).Broadcast(Lane::k4),
    Row(0xfb, kE, k66, kRead, kVec).Broadcast(Lane::k8),
    Row(0xfc, kE, k66, kRead, kVec).Masked(Lane::k1),
    Row(0xfd, kE, k66, kRead, kVec).Masked(Lane::k2),
    Row(0xfe, kE, k66, kRead, kVec).Broadcast(Lane::k4),
    Row(0xff, kS, kAny, kNothing, kZero).Is(Branch::kOther),  // ud0
};

// Down-converting stores (vpmovwb and the like): `base` is the first of six opcodes.
#define TRAPLINE_NARROWING(base)                                   \
  Row(base, kE, kF3, kWrite, kHalf).Masked(Lane::k1),              \
      Row((base) + 1, kE, kF3, kWrite, kQuarter).Masked(Lane::k1), \
      Row((base) + 2, kE, kF3, kWrite, kEighth).Masked(Lane::k1),  \
      Row((base) + 3, kE, kF3, kWrite, kHalf).Masked(Lane::k2),    \
      Row((base) + 4, kE, kF3, kWrite, kQuarter).Masked(Lane::k2), \
      Row((base) + 5, kE, kF3, kWrite, kHalf).Masked(Lane::k4)
// Widening loads (pmovsxbw and the like).
#define TRAPLINE_WIDENING(base)                                     \
  Row(base, kSve, k66, kRead, kHalf).Masked(Lane::k1),              \
      Row((base) + 1, kSve, k66, kRead, kQuarter).Masked(Lane::k1), \
      Row((base) + 2, kSve, k66, kRead, kEighth).Masked(Lane::k1),  \
      Row((base) + 3, kSve, k66, kRead, kHalf).Masked(Lane::k2),    \
      Row((base) + 4, kSve, k66, kRead, kQuarter).Masked(Lane::k2), \
      Row((base) + 5, kSve, k66, kRead, kHalf).Masked(Lane::k4)
// Ten fused multiply-adds from `base`: packed or, at the odd opcodes from base + 3, scalar.
#define TRAPLINE_FMA(base)                                                                        \
  Row(base, (base) + 2, kVe, k66, kRead, kVec).Broadcast(Lane::kW48), ScalarByW((base) + 3, kVe), \
      Row((base) + 4, kVe, k66, kRead, kVec).Broadcast(Lane::kW48), ScalarByW((base) + 5, kVe),   \
      Row((base) + 6, kVe, k66, kRead, kVec).Broadcast(Lane::kW48), ScalarByW((base) + 7, kVe),   \
      Row((base) + 8, kVe, k66, kRead, kVec).Broadcast(Lane::kW48), ScalarByW((base) + 9, kVe)
// A scalar of 4 or 8 bytes by W, masked by lane 0.
constexpr Row ScalarByW(int opcode, std::uint8_t encodings) {
  return Row(opcode, encodings, k66, kRead, kOpNo16).Masked(Lane::kW48);
}

constexpr OpcodeRow k0F38[] = {
    Row(0x00, 0x0b, kS, kNp, kRead, k8),
    Row(0x00, 0x0b, kSv, k66, kRead, kVec),
    Row(0x00, kE, k66, kRead, kVec),
    Row(0x04, kE, k66, kRead, kVec),
    Row(0x0b, kE, k66, kRead, kVec).Masked(Lane::k2),
    Row(0x0c, kVe, k66, kRead, kVec).Broadcast(Lane::k4).With(Masking::kUnmasked),
    Row(0x0d, kVe, k66, kRead, kVec).Broadcast(Lane::k8).With(Masking::kUnmasked),
    Row(0x0e, 0x0f, kV, k66, kRead, kVec),
    Row(0x10, kS, k66, kRead, kVec),
    Row(0x14, 0x15, kS, k66, kRead, kVec),
    Row(0x10, 0x12, kE, k66, kRead, kVec).Masked(Lane::k2),
    Row(0x13, kVe, k66, kRead, kHalf).Masked(Lane::k2),
    Row(0x14, 0x15, kE, k66, kRead, kVec).Broadcast(Lane::kW48),
    TRAPLINE_NARROWING(0x10),
    Row(0x16, kVe, k66, kRead, kVec).Broadcast(Lane::kW48).With(Masking::kUnmasked),
    Row(0x17, kSv, k66, kRead, kVec),
    Row(0x18, kVe, k66, kRead, k4).Masked(Lane::k4).With(Masking::kFolded),
    Row(0x19, kV, k66, kRead, k8),
    Row(0x19, kE, k66, kRead, k8).Masked(Lane::kW48).With(Masking::kFolded),
    Row(0x1a, kVe, k66, kRead, k16).Masked(Lane::kW48).With(Masking::kFolded).MemoryOnly(),
    Row(0x1b, kE, k66, kRead, k32).Masked(Lane::kW48).With(Masking::kFolded).MemoryOnly(),
    Row(0x1c, 0x1e, kS, kNp, kRead, k8),
    Row(0x1c, 0x1e, kSv, k66, kRead, kVec),
    Row(0x1c, kE, k66, kRead, kVec).Masked(Lane::k1),
    Row(0x1d, kE, k66, kRead, kVec).Masked(Lane::k2),
    Row(0x1e, kE, k66, kRead, kVec).Broadcast(Lane::k4),
    Row(0x1f, kE, k66, kRead, kVec).Broadcast(Lane::k8),
    TRAPLINE_WIDENING(0x20),
    TRAPLINE_NARROWING(0x20),
    Row(0x26, kE, k66 | kF3, kRead, kVec).Masked(Lane::kW12),
    Row(0x27, kE, k66 | kF3, kRead, kVec).Broadcast(Lane::kW48),
    Row(0x28, 0x29, kE, kF3, kNothing, kZero).RegisterOnly(),
    Row(0x38, 0x39, kE, kF3, kNothing, kZero).RegisterOnly(),
    Row(0x28, 0x29, kSve, k66, kRead, kVec).Broadcast(Lane::k8),
    Row(0x2a, kSve, k66, kRead, kVec).MemoryOnly(),
    Row(0x2a, kE, kF3, kNothing, kZero).RegisterOnly(),
    Row(0x3a, kE, kF3, kNothing, kZero).RegisterOnly(),
    Row(0x2b, kSve, k66, kRead, kVec).Broadcast(Lane::k4).With(Masking::kUnmasked),
    Row(0x2c, kV, k66, kRead, kVec).Masked(Lane::k4).MemoryOnly().Also(kVectorMask),
    Row(0x2d, kV, k66, kRead, kVec).Masked(Lane::k8).MemoryOnly().Also(kVectorMask),
    Row(0x2e, kV, k66, kWrite, kVec).Masked(Lane::k4).MemoryOnly().Also(kVectorMask),
    Row(0x2f, kV, k66, kWrite, kVec).Masked(Lane::k8).MemoryOnly().Also(kVectorMask),
    Row(0x2c, kE, k66, kRead, kVec).Broadcast(Lane::kW48),
    ScalarByW(0x2d, kE),
    TRAPLINE_WIDENING(0x30),
    TRAPLINE_NARROWING(0x30),
    Row(0x36, kVe, k66, kRead, kVec).Broadcast(Lane::kW48).With(Masking::kUnmasked),
    Row(0x37, kSve, k66, kRead, kVec).Broadcast(Lane::k8),
    Row(0x38, kSve, k66, kRead, kVec).Masked(Lane::k1),
    Row(0x39, kSve, k66, kRead, kVec).Broadcast(Lane::kW48),
    Row(0x3a, kSve, k66, kRead, kVec).Masked(Lane::k2),
    Row(0x3b, kSve, k66, kRead, kVec).Broadcast(Lane::kW48),
    Row(0x3c, kSve, k66, kRead, kVec).Masked(Lane::k1),
    Row(0x3d, kSve, k66, kRead, kVec).Broadcast(Lane::kW48),
    Row(0x3e, kSve, k66, kRead, kVec).Masked(Lane::k2),
    Row(0x3f, kSve, k66, kRead, kVec).Broadcast(Lane::kW48),
    Row(0x40, kSve, k66, kRead, kVec).Broadcast(Lane::kW48),
    Row(0x41, kSv, k66, kRead, kVec),
    Row(0x42, kE, k66, kRead, kVec).Broadcast(Lane::kW48),
    ScalarByW(0x43, kE),
    Row(0x44, kE, k66, kRead, kVec).Broadcast(Lane::kW48),
    Row(0x45, 0x47, kVe, k66, kRead, kVec).Broadcast(Lane::kW48),
    Row(0x49, kV, kNp, kRead, k64).MemoryOnly().Reg(0),   // ldtilecfg
    Row(0x49, kV, k66, kWrite, k64).MemoryOnly().Reg(0),  // sttilecfg
    Row(0x49, kV, kNp | kF2, kNothing, kZero).RegisterOnly(),
    Row(0x4b, kV, k66 | kF3F2, kNothing, kZero)
        .MemoryOnly()
        .Also(kUnknown),  // tile loads and stores
    Row(0x5c, kV, k66 | kF3F2, kNothing, kZero).RegisterOnly(),
    Row(0x5e, kV, kAny, kNothing, kZero).RegisterOnly(),
    Row(0x4c, kE, k66, kRead, kVec).Broadcast(Lane::kW48),
    ScalarByW(0x4d, kE),
    Row(0x4e, kE, k66, kRead, kVec).Broadcast(Lane::kW48),
    ScalarByW(0x4f, kE),
    Row(0x50, 0x51, kV, kAny, kRead, kVec),
    Row(0x52, 0x53, kV, k66, kRead, kVec),
    Row(0x50, 0x53, kE, k66, kRead, kVec).Broadcast(Lane::k4),
    Row(0x52, 0x53, kE, kF2, kRead, k16).MemoryOnly(),  // 4VNNIW
    Row(0x52, kE, kF3, kRead, kVec).Broadcast(Lane::k4),
    Row(0x54, kE, k66, kRead, kVec).Masked(Lane::kW12),
    Row(0x55, kE, k66, kRead, kVec).Broadcast(Lane::kW48),
    Row(0x58, kVe, k66, kRead, k4).Masked(Lane::k4).With(Masking::kFolded),
    Row(0x59, kV, k66, kRead, k8),
    Row(0x59, kE, k66, kRead, k8).Masked(Lane::kW48).With(Masking::kFolded),
    Row(0x5a, kVe, k66, kRead, k16).Masked(Lane::kW48).With(Masking::kFolded).MemoryOnly(),
    Row(0x5b, kE, k66, kRead, k32).Masked(Lane::kW48).With(Masking::kFolded).MemoryOnly(),
    Row(0x62, kE, k66, kRead, kVec).Masked(Lane::kW12).With(Masking::kCompressed),
    Row(0x63, kE, k66, kWrite, kVec).Masked(Lane::kW12).With(Masking::kCompressed),
    Row(0x64, 0x65, kE, k66, kRead, kVec).Broadcast(Lane::kW48),
    Row(0x66, kE, k66, kRead, kVec).Masked(Lane::kW12),
    Row(0x68, kE, kF2, kRead, kVec).Broadcast(Lane::kW48).With(Masking::kUnmasked),
    Row(0x70, kE, k66, kRead, kVec).Masked(Lane::k2),
    Row(0x71, kE, k66, kRead, kVec).Broadcast(Lane::kW48),
    Row(0x72, kV, kF3, kRead, kVec),
    Row(0x72, kE, k66, kRead, kVec).Masked(Lane::k2),
    Row(0x72, kE, kF3, kRead, kVec).Broadcast(Lane::k4),
    Row(0x72, kE, kF2, kRead, kVec).Broadcast(Lane::k4).With(Masking::kUnmasked),
    Row(0x73, kE, k66, kRead, kVec).Broadcast(Lane::kW48),
    Row(0x75, kE, k66, kRead, kVec),
    Row(0x76, 0x77, kE, k66, kRead, kVec).Broadcast(Lane::kW48).With(Masking::kUnmasked),
    Row(0x78, kVe, k66, kRead, k1).Masked(Lane::k1).With(Masking::kFolded),
    Row(0x79, kVe, k66, kRead, k2).Masked(Lane::k2).With(Masking::kFolded),
    Row(0x7a, 0x7c, kE, k66, kNothing, kZero).RegisterOnly(),
    Row(0x7d, kE, k66, kRead, kVec),
    Row(0x7e, 0x7f, kE, k66, kRead, kVec).Broadcast(Lane::kW48).With(Masking::kUnmasked),
    Row(0x80, 0x82, kS, k66, kRead, k16).MemoryOnly(),
    Row(0x83, kE, k66, kRead, kVec).Broadcast(Lane::k8).With(Masking::kUnmasked),
    Row(0x88, 0x89, kE, k66, kRead, kVec).Masked(Lane::kW48).With(Masking::kCompressed),
    Row(0x8a, 0x8b, kE, k66, kWrite, kVec).Masked(Lane::kW48).With(Masking::kCompressed),
    Row(0x8c, kV, k66, kRead, kVec).Masked(Lane::kW48).MemoryOnly().Also(kVectorMask),
    Row(0x8d, kE, k66, kRead, kVec),
    Row(0x8e, kV, k66, kWrite, kVec).Masked(Lane::kW48).MemoryOnly().Also(kVectorMask),
    Row(0x8f, kE, k66, kRead, kVec).Masked(Lane::k1),
    Row(0x90, kVe, k66, kRead, kZero).Masked(Lane::kW48).MemoryOnly().Also(kGatherD),
    Row(0x91, kVe, k66, kRead, kZero).Masked(Lane::kW48).MemoryOnly().Also(kGatherQ),
    Row(0x92, kVe, k66, kRead, kZero).Masked(Lane::kW48).MemoryOnly().Also(kGatherD),
    Row(0x93, kVe, k66, kRead, kZero).Masked(Lane::kW48).MemoryOnly().Also(kGatherQ),
    Row(0xa0, kE, k66, kWrite, kZero).Masked(Lane::kW48).MemoryOnly().Also(kGatherD),
    Row(0xa1, kE, k66, kWrite, kZero).Masked(Lane::kW48).MemoryOnly().Also(kGatherQ),
    Row(0xa2, kE, k66, kWrite, kZero).Masked(Lane::kW48).MemoryOnly().Also(kGatherD),
    Row(0xa3, kE, k66, kWrite, kZero).Masked(Lane::kW48).MemoryOnly().Also(kGatherQ),
    TRAPLINE_FMA(0x96),
    TRAPLINE_FMA(0xa6),
    TRAPLINE_FMA(0xb6),
    Row(0x9a, 0x9b, kE, kF2, kRead, k16).MemoryOnly(),  // 4FMAPS
    Row(0xaa, 0xab, kE, kF2, kRead, k16).MemoryOnly(),
    Row(0xb0, kV, kAny, kRead, kVec).MemoryOnly(),     // AVX-NE-CONVERT
    Row(0xb1, kV, k66 | kF3, kRead, k2).MemoryOnly(),  // broadcasts of it
    Row(0xb4, 0xb5, kVe, k66, kRead, kVec).Broadcast(Lane::k8),
    Row(0xc4, kE, k66, kRead, kVec).Broadcast(Lane::kW48).With(Masking::kUnmasked),
    Row(0xc6, 0xc7, kE, k66, kNothing, kZero)
        .Masked(Lane::kW48)
        .MemoryOnly()
        .Reg(1, 2, 5, 6)
        .Also(kGatherD),  // prefetch
    Row(0xc8, 0xcd, kS, kNp, kRead, k16),
    Row(0xc8, kE, k66, kRead, kVec).Broadcast(Lane::kW48),
    Row(0xca, kE, k66, kRead, kVec).Broadcast(Lane::kW48),
    Row(0xcc, kE, k66, kRead, kVec).Broadcast(Lane::kW48),
    ScalarByW(0xcb, kE),
    ScalarByW(0xcd, kE),
    Row(0xcb, 0xcd, kV, kF2, kNothing, kZero).RegisterOnly(),  // SHA-512
    Row(0xcf, kSve, k66, kRead, kVec).Masked(Lane::k1),
    Row(0xd2, 0xd3, kV, kNp66 | kF3, kRead, kVec),  // AVX-VNNI-INT16
    Row(0xda, kV, kAny, kRead, kVec),               // SM3, SM4
    Row(0xd8, kS, kF3, kRead, Bytes(48))
        .MemoryOnly()
        .Also(kUnknown),  // Key Locker: handles of two sizes
    Row(0xdc, 0xdf, kS, kF3, kRead, Bytes(48)).Also(kUnknown),
    Row(0xdb, kSv, k66, kRead, k16),
    Row(0xdc, 0xdf, kSve, k66, kRead, kVec),
    Row(0xe0, 0xef, kV, k66, kReadWrite, kOpNo16)
        .MemoryOnly(),                              // cmpccxadd: Decode makes it atomic
    Row(0xf0, kS, kNp66, kRead, kOp).MemoryOnly(),  // movbe
    Row(0xf1, kS, kNp66, kWrite, kOp).MemoryOnly(),
    Row(0xf0, kS, kF2, kRead, k1),  // crc32
    Row(0xf1, kS, kF2, kRead, kOp),
    Row(0xf2, kV, kNp, kRead, kOpNo16),
    Row(0xf3, kV, kNp, kRead, kOpNo16).Reg(1, 2, 3),
    Row(0xf5, kS, k66, kWrite, kOpNo16).MemoryOnly(),  // wruss
    Row(0xf5, kV, kNp | kF3F2, kRead, kOpNo16),
    Row(0xf6, kS, kNp, kWrite, kOpNo16).MemoryOnly(),  // wrss
    Row(0xf6, kS, k66 | kF3, kRead, kOpNo16),
    Row(0xf6, kV, kF2, kRead, kOpNo16),
    Row(0xf7, kV, kAny, kRead, kOpNo16),
    Row(0xf8, kS, k66 | kF3F2, kRead, k64).MemoryOnly().Also(kMoveDirect64),
    Row(0xf9, kS, kNp, kWrite, kOpNo16).MemoryOnly(),
    Row(0xfa, 0xfb, kS, kF3, kNothing, kZero).RegisterOnly(),  // encodekey
    Row(0xfc, kS, kAny, kReadWrite, kOpNo16).MemoryOnly(),     // aadd ...: Decode makes it atomic
};

constexpr OpcodeRow k0F3A[] = {
    Row(0x00, 0x01, kVe, k66, kRead, kVec).Broadcast(Lane::k8).With(Masking::kUnmasked).Imm(),
    Row(0x02, kV, k66, kRead, kVec).Imm(),
    Row(0x03, kE, k66, kRead, kVec).Broadcast(Lane::kW48).With(Masking::kUnmasked).Imm(),
    Row(0x04, kVe, k66, kRead, kVec).Broadcast(Lane::k4).With(Masking::kUnmasked).Imm(),
    Row(0x05, kVe, k66, kRead, kVec).Broadcast(Lane::k8).With(Masking::kUnmasked).Imm(),
    Row(0x06, kV, k66, kRead, kVec).Imm(),
    Row(0x08, kSve, k66, kRead, kVec).Broadcast(Lane::k4).Imm(),
    Row(0x09, kSve, k66, kRead, kVec).Broadcast(Lane::k8).Imm(),
    Row(0x0a, kSve, k66, kRead, k4).Masked(Lane::k4).Imm(),
    Row(0x0b, kSve, k66, kRead, k8).Masked(Lane::k8).Imm(),
    Row(0x08, kE, kNp, kRead, kVec).Broadcast(Lane::k2).Imm(),  // FP16
    Row(0x0a, kE, kNp, kRead, k2).Masked(Lane::k2).Imm(),
    Row(0x0c, 0x0e, kSv, k66, kRead, kVec).Imm(),
    Row(0x0f, kS, kNp, kRead, k8).Imm(),
    Row(0x0f, kSve, k66, kRead, kVec).Imm(),
    Row(0x14, kSve, k66, kWrite, k1).Imm(),
    Row(0x15, kSve, k66, kWrite, k2).Imm(),
    Row(0x16, kSve, k66, kWrite, kOpNo16).Imm(),
    Row(0x17, kSve, k66, kWrite, k4).Imm(),
    Row(0x18, kVe, k66, kRead, k16).Imm(),
    Row(0x19, kVe, k66, kWrite, k16).Masked(Lane::kW48).Imm(),
    Row(0x1a, kE, k66, kRead, k32).Imm(),
    Row(0x1b, kE, k66, kWrite, k32).Masked(Lane::kW48).Imm(),
    Row(0x1d, kVe, k66, kWrite, kHalf).Masked(Lane::k2).Imm(),
    Row(0x1e, 0x1f, kE, k66, kRead, kVec).Broadcast(Lane::kW48).Imm(),
    Row(0x20, kSve, k66, kRead, k1).Imm(),
    Row(0x21, kSve, k66, kRead, k4).Imm(),
    Row(0x22, kSve, k66, kRead, kOpNo16).Imm(),
    Row(0x23, kE, k66, kRead, kVec).Broadcast(Lane::kW48).With(Masking::kUnmasked).Imm(),
    Row(0x25, kE, k66, kRead, kVec).Broadcast(Lane::kW48).Imm(),
    Row(0x26, kE, k66, kRead, kVec).Broadcast(Lane::kW48).Imm(),
    Row(0x26, kE, kNp, kRead, kVec).Broadcast(Lane::k2).Imm(),
    ScalarByW(0x27, kE).Imm(),
    Row(0x27, kE, kNp, kRead, k2).Masked(Lane::k2).Imm(),
    Row(0x30, 0x33, kV, k66, kNothing, kZero).RegisterOnly().Imm(),
    Row(0x38, kVe, k66, kRead, k16).Imm(),
    Row(0x39, kVe, k66, kWrite, k16).Masked(Lane::kW48).Imm(),
    Row(0x3a, kE, k66, kRead, k32).Imm(),
    Row(0x3b, kE, k66, kWrite, k32).Masked(Lane::kW48).Imm(),
    Row(0x3e, 0x3f, kE, k66, kRead, kVec).Masked(Lane::kW12).Imm(),
    Row(0x40, 0x41, kSv, k66, kRead, kVec).Imm(),
    Row(0x42, kSve, k66, kRead, kVec).Imm(),
    Row(0x43, kE, k66, kRead, kVec).Broadcast(Lane::kW48).With(Masking::kUnmasked).Imm(),
    Row(0x44, kSve, k66, kRead, kVec).Imm(),
    Row(0x46, kV, k66, kRead, kVec).Imm(),
    Row(0x48, 0x49, kV, k66, kRead, kVec).Imm(),  // XOP's vpermil2
    Row(0x4a, 0x4c, kV, k66, kRead, kVec).Imm(),
    Row(0x50, kE, k66, kRead, kVec).Broadcast(Lane::kW48).Imm(),
    ScalarByW(0x51, kE).Imm(),
    Row(0x54, kE, k66, kRead, kVec).Broadcast(Lane::kW48).Imm(),
    ScalarByW(0x55, kE).Imm(),
    Row(0x56, kE, k66, kRead, kVec).Broadcast(Lane::kW48).Imm(),
    ScalarByW(0x57, kE).Imm(),
    Row(0x56, kE, kNp, kRead, kVec).Broadcast(Lane::k2).Imm(),
    Row(0x57, kE, kNp, kRead, k2).Masked(Lane::k2).Imm(),
    // FMA4; W only swaps the operands.
    Row(0x5c, 0x5f, kV, k66, kRead, kVec).Imm(),
    Row(0x68, 0x69, kV, k66, kRead, kVec).Imm(),
    Row(0x6a, kV, k66, kRead, k4).Imm(),
    Row(0x6b, kV, k66, kRead, k8).Imm(),
    Row(0x6c, 0x6d, kV, k66, kRead, kVec).Imm(),
    Row(0x6e, kV, k66, kRead, k4).Imm(),
    Row(0x6f, kV, k66, kRead, k8).Imm(),
    Row(0x78, 0x79, kV, k66, kRead, kVec).Imm(),
    Row(0x7a, kV, k66, kRead, k4).Imm(),
    Row(0x7b, kV, k66, kRead, k8).Imm(),
    Row(0x7c, 0x7d, kV, k66, kRead, kVec).Imm(),
    Row(0x7e, kV, k66, kRead, k4).Imm(),
    Row(0x7f, kV, k66, kRead, k8).Imm(),
    Row(0x60, 0x63, kSv, k66, kRead, k16).Imm(),
    Row(0x66, kE, k66, kRead, kVec).Broadcast(Lane::kW48).Imm(),
    ScalarByW(0x67, kE).Imm(),
    Row(0x66, kE, kNp, kRead, kVec).Broadcast(Lane::k2).Imm(),
    Row(0x67, kE, kNp, kRead, k2).Masked(Lane::k2).Imm(),
    Row(0x70, kE, k66, kRead, kVec).Masked(Lane::k2).Imm(),
    Row(0x71, kE, k66, kRead, kVec).Broadcast(Lane::kW48).Imm(),
    Row(0x72, kE, k66, kRead, kVec).Masked(Lane::k2).Imm(),
    Row(0x73, kE, k66, kRead, kVec).Broadcast(Lane::kW48).Imm(),
    Row(0xc2, kE, kNp, kRead, kVec).Broadcast(Lane::k2).Imm(),
    Row(0xc2, kE, kF3, kRead, k2).Masked(Lane::k2).Imm(),
    Row(0xcc, kS, kNp, kRead, k16).Imm(),
    Row(0xce, 0xcf, kSve, k66, kRead, kVec).Broadcast(Lane::k8).With(Masking::kUnmasked).Imm(),
    Row(0xde, kV, k66, kRead, kVec).Imm(),  // vsm3rnds2
    Row(0xdf, kSv, k66, kRead, k16).Imm(),
    Row(0xf0, kV, kF2, kRead, kOpNo16).Imm(),
    Row(0xf0, kS, kF3, kNothing, kZero).RegisterOnly().Imm(),
};

// FP16 in the place that 0F has for single precision.
#define TRAPLINE_HALF_PRECISION(opcode)                  \
  Row(opcode, kE, kNp, kRead, kVec).Broadcast(Lane::k2), \
      Row(opcode, kE, kF3, kRead, k2).Masked(Lane::k2)

constexpr OpcodeRow kMap5[] = {
    Row(0x10, kE, kF3, kRead, k2).Masked(Lane::k2),
    Row(0x11, kE, kF3, kWrite, k2).Masked(Lane::k2),
    Row(0x1d, kE, kNp, kRead, k4).Masked(Lane::k4),
    Row(0x1d, kE, k66, kRead, kVec).Broadcast(Lane::k4),
    Row(0x2a, kE, kF3, kRead, kOpNo16),
    Row(0x2c, 0x2d, kE, kF3, kRead, k2),
    Row(0x2e, 0x2f, kE, kNp, kRead, k2),
    TRAPLINE_HALF_PRECISION(0x51),
    TRAPLINE_HALF_PRECISION(0x58),
    TRAPLINE_HALF_PRECISION(0x59),
    Row(0x5a, kE, kNp, kRead, kQuarter).Broadcast(Lane::k2),
    Row(0x5a, kE, k66, kRead, kVec).Broadcast(Lane::k8),
    Row(0x5a, kE, kF3, kRead, k2).Masked(Lane::k2),
    Row(0x5a, kE, kF2, kRead, k8).Masked(Lane::k8),
    Row(0x5b, kE, kNp, kRead, kVec).Broadcast(Lane::kW48),
    Row(0x5b, kE, k66 | kF3, kRead, kHalf).Broadcast(Lane::k2),
    TRAPLINE_HALF_PRECISION(0x5c),
    TRAPLINE_HALF_PRECISION(0x5d),
    TRAPLINE_HALF_PRECISION(0x5e),
    TRAPLINE_HALF_PRECISION(0x5f),
    Row(0x6e, kE, k66, kRead, k2),
    Row(0x7e, kE, k66, kWrite, k2),
    Row(0x78, 0x79, kE, kNp, kRead, kHalf).Broadcast(Lane::k2),
    Row(0x78, 0x79, kE, k66, kRead, kQuarter).Broadcast(Lane::k2),
    Row(0x78, 0x79, kE, kF3, kRead, k2),
    Row(0x7a, kE, k66, kRead, kQuarter).Broadcast(Lane::k2),
    Row(0x7a, kE, kF2, kRead, kVec).Broadcast(Lane::kW48),
    Row(0x7b, kE, k66, kRead, kQuarter).Broadcast(Lane::k2),
    Row(0x7b, kE, kF3, kRead, kOpNo16),
    Row(0x7c, kE, kNp66, kRead, kVec).Broadcast(Lane::k2),
    Row(0x7d, kE, kAny, kRead, kVec).Broadcast(Lane::k2),
};

#define TRAPLINE_HALF_FMA(base)                                    \
  Row(base, (base) + 2, kE, k66, kRead, kVec).Broadcast(Lane::k2), \
      Row((base) + 3, kE, k66, kRead, k2).Masked(Lane::k2),        \
      Row((base) + 4, kE, k66, kRead, kVec).Broadcast(Lane::k2),   \
      Row((base) + 5, kE, k66, kRead, k2).Masked(Lane::k2),        \
      Row((base) + 6, kE, k66, kRead, kVec).Broadcast(Lane::k2),   \
      Row((base) + 7, kE, k66, kRead, k2).Masked(Lane::k2),        \
      Row((base) + 8, kE, k66, kRead, kVec).Broadcast(Lane::k2),   \
      Row((base) + 9, kE, k66, kRead, k2).Masked(Lane::k2)

constexpr OpcodeRow kMap6[] = {
    Row(0x13, kE, kNp, kRead, k2).Masked(Lane::k2),
    Row(0x13, kE, k66, kRead, kHalf).Broadcast(Lane::k2),
    Row(0x2c, kE, k66, kRead, kVec).Broadcast(Lane::k2),
    Row(0x2d, kE, k66, kRead, k2).Masked(Lane::k2),
    Row(0x42, kE, k66, kRead, kVec).Broadcast(Lane::k2),
    Row(0x43, kE, k66, kRead, k2).Masked(Lane::k2),
    Row(0x4c, kE, k66, kRead, kVec).Broadcast(Lane::k2),
    Row(0x4d, kE, k66, kRead, k2).Masked(Lane::k2),
    Row(0x4e, kE, k66, kRead, kVec).Broadcast(Lane::k2),
    Row(0x4f, kE, k66, kRead, k2).Masked(Lane::k2),
    Row(0x56, kE, kF3F2, kRead, kVec).Broadcast(Lane::k4),
    Row(0x57, kE, kF3F2, kRead, k4).Masked(Lane::k4),
    Row(0xd6, kE, kF3F2, kRead, kVec).Broadcast(Lane::k4),
    Row(0xd7, kE, kF3F2, kRead, k4).Masked(Lane::k4),
    TRAPLINE_HALF_FMA(0x96),
    TRAPLINE_HALF_FMA(0xa6),
    TRAPLINE_HALF_FMA(0xb6),
};

// AMD's XOP (APM vol. 4): legacy rows without mandatory prefix stand for it.
constexpr OpcodeRow kXop8[] = {
    Row(0x85, 0x87, kV, kNp, kRead, k16).Imm(), Row(0x8e, 0x8f, kV, kNp, kRead, k16).Imm(),
    Row(0x95, 0x97, kV, kNp, kRead, k16).Imm(), Row(0x9e, 0x9f, kV, kNp, kRead, k16).Imm(),
    Row(0xa2, kV, kNp, kRead, kVec).Imm(),      Row(0xa3, kV, kNp, kRead, k16).Imm(),
    Row(0xa6, kV, kNp, kRead, k16).Imm(),       Row(0xb6, kV, kNp, kRead, k16).Imm(),
    Row(0xc0, 0xc3, kV, kNp, kRead, k16).Imm(), Row(0xcc, 0xcf, kV, kNp, kRead, k16).Imm(),
    Row(0xec, 0xef, kV, kNp, kRead, k16).Imm(),
};
constexpr OpcodeRow kXop9[] = {
    Row(0x01, kV, kNp, kRead, kOpNo16).Reg(1, 2, 3, 4, 5, 6, 7),
    Row(0x02, kV, kNp, kRead, kOpNo16).Reg(1, 6),
    Row(0x12, kV, kNp, kNothing, kZero).RegisterOnly().Reg(0, 1).Also(kUnknown),  // llwpcb, slwpcb
    Row(0x80, 0x81, kV, kNp, kRead, kVec),
    Row(0x82, kV, kNp, kRead, k4),
    Row(0x83, kV, kNp, kRead, k8),
    Row(0x90, 0x9b, kV, kNp, kRead, k16),
    Row(0xc1, 0xc3, kV, kNp, kRead, k16),
    Row(0xc6, 0xc7, kV, kNp, kRead, k16),
    Row(0xcb, kV, kNp, kRead, k16),
    Row(0xd1, 0xd3, kV, kNp, kRead, k16),
    Row(0xd6, 0xd7, kV, kNp, kRead, k16),
    Row(0xdb, kV, kNp, kRead, k16),
    Row(0xe1, 0xe3, kV, kNp, kRead, k16),
};
constexpr OpcodeRow kXopA[] = {
    Row(0x10, kV, kNp, kRead, kOpNo16).Imm(Immediate::k32),
    Row(0x12, kV, kNp, kRead, k4).Imm(Immediate::k32).Reg(0, 1).Also(kUnknown),  // lwpins, lwpval
};

// The rows of a map by opcode: a row for several opcodes is there for each of them.
class RowsByOpcode {
 public:
  RowsByOpcode() = default;
  explicit RowsByOpcode(std::span<const OpcodeRow> rows) {
    for (unsigned opcode = 0; opcode < 256; ++opcode) {
      for (const OpcodeRow& row : rows) {
        if (opcode >= row.first && opcode <= row.last) rows_.push_back(row);
      }
      end_[opcode + 1] = rows_.size();
    }
  }

  std::span<const OpcodeRow> Of(std::uint8_t opcode) const {
    return {rows_.data() + end_[opcode], rows_.data() + end_[opcode + 1]};
  }

 private:
  std::vector<OpcodeRow> rows_;
  std::array<std::size_t, 257> end_{};  // of those for all opcodes before
};

constexpr unsigned kMaps = 11;

std::array<RowsByOpcode, kMaps> AllRows() {
  std::array<RowsByOpcode, kMaps> maps;
  maps[kMapOneByte] = RowsByOpcode(kOneByte);
  maps[kMap0F] = RowsByOpcode(k0F);
  maps[kMap0F38] = RowsByOpcode(k0F38);
  maps[kMap0F3A] = RowsByOpcode(k0F3A);
  maps[5] = RowsByOpcode(kMap5);
  maps[6] = RowsByOpcode(kMap6);
  maps[kXopMap8] = RowsByOpcode(kXop8);
  maps[kXopMap9] = RowsByOpcode(kXop9);
  maps[kXopMapA] = RowsByOpcode(kXopA);
  return maps;
}

}  // namespace

std::span<const OpcodeRow> RowsOf(std::uint8_t map, std::uint8_t opcode) {
  static const std::array<RowsByOpcode, kMaps> all = AllRows();
  return map < kMaps ? all[map].Of(opcode) : std::span<const OpcodeRow>();
}

}  // namespace trapline
