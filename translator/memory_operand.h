// One operand of an instruction that touches memory. Plain data, for the agent too.
#pragma once

#include <cstdint>

#include "translator/register_file.h"

namespace trapline {

// Which of an operand's bytes are touched.
enum class Pattern : std::uint8_t {
  kWhole,      // all `size` bytes
  kRepeated,   // string instruction: elements of `size` bytes, upwards or (direction flag)
               // downwards, rcx of them if the instruction has a repeat prefix, else one
  kBitString,  // bt, bts, btr, btc with a register offset: `size` bytes at base + what the register
               // says
  kGather,  // `element_count` elements of `size` bytes at base + index[i] * scale, each if its mask
            // lane is set
  kLanes,   // element i of `element_size` bytes if its mask lane is set
  kCompressed,    // as many elements as mask lanes are set, one after the other (compress, expand)
  kXsaveArea,     // the legacy region, header and components that edx:eax selects, standard format
  kXsaveCompact,  // the same in compacted format
};

// Where the mask of kGather, kLanes and kCompressed comes from.
enum class MaskKind : std::uint8_t {
  kNone,    // all lanes are set
  kOpmask,  // bit i of k[mask_register]
  kVector,  // the sign bit of element i, of `mask_element_size` bytes, of vector register
            // `mask_register`
  kMmx,     // the same of MMX register `mask_register`
};

enum class Segment : std::uint8_t { kNone, kFs, kGs };

struct MemoryOperand {
  bool reads = false;
  bool writes = false;
  bool implicit = false;  // not the ModRM operand: stack, string, fixed register
  Segment segment = Segment::kNone;
  std::uint8_t base = kNoRegister;   // general register, kRip or kNoRegister
  std::uint8_t index = kNoRegister;  // general register; of kGather: vector register 0 to 31
  std::uint8_t scale = 1;            // 1, 2, 4 or 8
  bool address_is_32_bits =
      false;  // prefix 67h: the effective address is cut to 32 bits before the segment base
  Pattern pattern = Pattern::kWhole;
  MaskKind mask = MaskKind::kNone;
  std::uint8_t mask_register = 0;
  std::uint8_t mask_element_size = 0;     // bytes; of kVector and kMmx
  std::uint8_t element_size = 0;          // bytes; of kLanes and kCompressed
  std::uint8_t element_count = 0;         // of the patterns that have lanes
  std::uint8_t lane_count = 0;            // of kLanes: mask lanes, a multiple of element_count
  std::uint8_t index_size = 0;            // bytes of one index of kGather: 4 or 8
  std::uint8_t bit_offset = kNoRegister;  // general register, of kBitString
  std::uint8_t alignment = 0;  // the address is rounded down to this; 0: not at all (clzero)
  // Bytes; of kGather and kRepeated: of one element. 0 for the xsave patterns, whose size is the
  // processor's.
  std::uint32_t size = 0;
  std::int64_t displacement = 0;  // for kRip relative to the next instruction
};

}  // namespace trapline
