// The table of memory effects: one row per encoding or range of encodings. Internal to Decode.
#pragma once

#include <cstdint>
#include <span>

namespace trapline {

// Maps of AMD's XOP, numbered as XOP.mmmmm numbers them.
inline constexpr std::uint8_t kXopMap8 = 8;
inline constexpr std::uint8_t kXopMap9 = 9;
inline constexpr std::uint8_t kXopMapA = 10;

// Sets of encodings a row stands for.
inline constexpr std::uint8_t kSse = 1;  // legacy encoding, with or without mandatory prefix
inline constexpr std::uint8_t kVexed = 2;
inline constexpr std::uint8_t kEvexed = 4;

// Sets of mandatory prefixes (VEX.pp). kAnyPrefix: 66h is the operand size, f2h and f3h mean
// nothing here.
inline constexpr std::uint8_t kNp = 1;
inline constexpr std::uint8_t k66 = 2;
inline constexpr std::uint8_t kF3 = 4;
inline constexpr std::uint8_t kF2 = 8;
inline constexpr std::uint8_t kAnyPrefix = 15;

// What happens to the ModRM operand when it is memory.
enum class Effect : std::uint8_t { kNothing, kRead, kWrite, kReadWrite };

// Sizes in bytes; those up to 0x3ff stand for themselves.
enum class Size : std::uint16_t {
  kZero = 0,
  kOperand = 0x400,  // 2, 4 or 8 by 66h and REX.W
  kOperandNo16,      // 4 or 8 by W
  kStackOperand,     // 8, or 2 with 66h
  kFarPointer,       // 2 more than kOperand
  kTwiceY,           // cmpxchg8b, cmpxchg16b: 8 or 16 by W
  kVector,           // vector length
  kVectorHalf,
  kVectorQuarter,
  kVectorEighth,
  kFloat,        // by mandatory prefix: none and 66h a vector, f3h 4, f2h 8
  kDuplicate,    // movddup: 8 of 16, else the vector
  kKmov,         // by mandatory prefix and W: 2, 8, 1, 4
  kEnvironment,  // fnstenv: 28, or 14 with 66h
  kX87State,     // fnsave: 108, or 94
};

// Sizes of one lane, for masks and broadcasts of EVEX.
enum class Lane : std::uint8_t {
  kNone = 0,
  k1 = 1,
  k2 = 2,
  k4 = 4,
  k8 = 8,
  kW48,     // 4 or 8 by W
  kW12,     // 1 or 2 by W
  kPrefix,  // 4, or 8 with 66h or f2h
};

enum class Masking : std::uint8_t {
  kPerLane,   // a lane that is masked out is not touched
  kUnmasked,  // the mask has no say in what is touched
  kFolded,    // one of memory's lanes is touched if any lane of the destination that gets it is set
  kCompressed,  // as many lanes as are set, packed
};

enum class Immediate : std::uint8_t {
  kNone,
  k8,
  k16,
  kZ,       // 2 or 4
  kV,       // 2, 4 or 8
  k16And8,  // enter
  k32,
  kRelative8,
  kRelative32,
  kRelativeZ,  // xbegin: 2 or 4
  kOffset,     // an address of 8 bytes, 4 with 67h
  k8And8,      // extrq, insertq
};

// What is not said by the ModRM operand.
enum class Special : std::uint8_t {
  kNone,
  kPush,       // pushes kStackOperand bytes, after the ModRM operand is read
  kPop,        // pops kStackOperand bytes, before the ModRM operand is written
  kCall,       // pushes 8 bytes
  kFarCall,    // pushes two operands
  kReturn,     // pops 8 bytes
  kFarReturn,  // pops two operands
  kInterruptReturn,
  kEnter,
  kLeave,
  kMoveString,
  kCompareString,
  kStoreString,
  kLoadString,
  kScanString,
  kInString,
  kOutString,
  kXlat,
  kOffset,  // the operand's address is the immediate
  kBitString,
  kMaskedMove,    // maskmovq, maskmovdqu: to [rdi]
  kMoveDirect64,  // movdir64b, enqcmd: 64 bytes from the ModRM operand to the address in ModRM.reg
  kVectorMask,    // vmaskmov, vpmaskmov: lanes by the sign bits of vvvv
  kGatherD,       // gather and scatter with 4-byte indices
  kGatherQ,       // ... with 8-byte indices
  kXsave,
  kXsaveCompact,
  kZeroCacheLine,  // clzero: the line at rax
  kUnknown,
};

struct OpcodeRow {
  std::uint8_t first = 0;
  std::uint8_t last = 0;
  std::uint8_t encodings = kSse;
  std::uint8_t prefixes = kAnyPrefix;
  Effect effect = Effect::kNothing;
  Size size = Size::kZero;
  Lane lane = Lane::kNone;
  Masking masking = Masking::kPerLane;
  Immediate immediate = Immediate::kNone;
  Special special = Special::kNone;
  std::uint8_t branch = 0;        // a Branch
  std::uint8_t registers = 0xff;  // values of ModRM.reg the row is for
  std::uint8_t w_values = 3;      // 1: W=0, 2: W=1
  bool modrm = true;
  bool memory_form = true;    // ModRM.mod other than 3
  bool register_form = true;  // ModRM.mod 3
  bool broadcast = false;     // EVEX.b with memory
};

// The rows for an opcode of a map, numbered as in Instruction, of which `Decode` takes the first
// that fits; none if there is no such map.
std::span<const OpcodeRow> RowsOf(std::uint8_t map, std::uint8_t opcode);

}  // namespace trapline
