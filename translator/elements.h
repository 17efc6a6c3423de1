// Which elements an instruction touches whose mask or indices are in vector registers, or which of
// a bit string's words.
// Freestanding, general registers only: the monitor and the agent use the same source.
#pragma once

#include <bit>
#include <cstdint>

#include "translator/memory_operand.h"
#include "translator/register_file.h"

namespace trapline {

// Where this processor keeps components of its extended state in an XSAVE image of standard format
// (SDM vol. 1, 13.4), in bytes; 0: it has none of them.
struct VectorLayout {
  std::uint32_t avx = 0, opmask = 0, zmm_high = 0, zmm16 = 0;
};

// Reads registers out of such an image, which may be null.
class VectorState {
 public:
  VectorState(const unsigned char* image, const VectorLayout& layout)
      : image_(image), layout_(layout) {}

  bool available() const { return image_ != nullptr; }

  std::uint64_t Opmask(unsigned number) const {
    const unsigned char* component = Component(kOpmask, layout_.opmask);
    return component == nullptr ? 0 : Read(component + 8 * number, 8);
  }

  // Bytes [offset, offset + size) of vector register `number`, inside one 16-byte part; size 1
  // to 8.
  std::uint64_t Vector(unsigned number, unsigned offset, unsigned size) const {
    const unsigned char* from = nullptr;
    if (number >= 16) {
      from = Component(kZmm16, layout_.zmm16);
      if (from != nullptr) from += 64 * (number - 16) + offset;
    } else if (offset < 16) {
      constexpr std::uint32_t kSseOffset = 160;
      from = Component(kSse, kSseOffset);
      if (from != nullptr) from += 16 * number + offset;
    } else if (offset < 32) {
      from = Component(kAvx, layout_.avx);
      if (from != nullptr) from += 16 * number + offset - 16;
    } else {
      from = Component(kZmmHigh, layout_.zmm_high);
      if (from != nullptr) from += 32 * number + offset - 32;
    }
    return from == nullptr ? 0 : Read(from, size);
  }

  std::uint64_t Mmx(unsigned number) const {
    if ((Present() & 1) == 0) return 0;
    // The image holds st0 to st7; MMX registers are the physical ones.
    const unsigned top = image_[3] >> 3 & 7;
    return Read(image_ + 32 + 16 * ((number - top) & 7), 8);
  }

 private:
  static constexpr unsigned kSse = 1, kAvx = 2, kOpmask = 5, kZmmHigh = 6, kZmm16 = 7;
  static constexpr std::uint32_t kXstateBvOffset = 512;

  // Little-endian.
  static std::uint64_t Read(const unsigned char* from, unsigned size) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < size; ++i) value |= std::uint64_t{from[i]} << 8 * i;
    return value;
  }

  std::uint64_t Present() const { return Read(image_ + kXstateBvOffset, 8); }

  // Null when the component is in its initial state, all zeros.
  const unsigned char* Component(unsigned number, std::uint32_t offset) const {
    return (Present() >> number & 1) == 0 ? nullptr : image_ + offset;
  }

  const unsigned char* image_;
  const VectorLayout& layout_;
};

// The operand's address but for the base of its segment and what an index in a vector register
// adds. `next_rip`: that of the instruction behind it.
inline std::uint64_t EffectiveAddress(const MemoryOperand& operand, const RegisterFile& registers,
                                      std::uint64_t next_rip) {
  std::uint64_t address = static_cast<std::uint64_t>(operand.displacement);
  if (operand.base == kRip) {
    address += next_rip;
  } else if (operand.base != kNoRegister) {
    address += registers.gpr[operand.base];
  }
  if (operand.index != kNoRegister && operand.pattern != Pattern::kGather) {
    std::uint64_t index = registers.gpr[operand.index];
    if (operand.implicit) index &= 0xff;  // xlat
    address += index * operand.scale;
  }
  return address;
}

inline std::uint64_t LinearAddress(const MemoryOperand& operand, const RegisterFile& registers,
                                   std::uint64_t effective) {
  if (operand.address_is_32_bits) effective &= 0xffffffff;
  if (operand.segment == Segment::kFs) effective += registers.fs_base;
  if (operand.segment == Segment::kGs) effective += registers.gs_base;
  return operand.alignment == 0 ? effective : effective & ~std::uint64_t{operand.alignment - 1u};
}

inline bool IsLaneSet(const MemoryOperand& operand, unsigned lane, const VectorState& vectors) {
  switch (operand.mask) {
    case MaskKind::kNone:
      return true;
    case MaskKind::kOpmask:
      return (vectors.Opmask(operand.mask_register) >> lane & 1) != 0;
    case MaskKind::kVector: {
      const unsigned size = operand.mask_element_size;
      return (vectors.Vector(operand.mask_register, lane * size + size - 1, 1) & 0x80) != 0;
    }
    case MaskKind::kMmx:
      return (vectors.Mmx(operand.mask_register) >> (8 * lane + 7) & 1) != 0;
  }
  return true;
}

// Whether the pattern is one of those that ForEachElement takes.
constexpr bool HasElements(const MemoryOperand& operand) {
  return operand.pattern == Pattern::kGather || operand.pattern == Pattern::kLanes ||
         operand.pattern == Pattern::kCompressed || operand.pattern == Pattern::kBitString;
}

// Whether they are apart from each other, or elsewhere than the operand says.
constexpr bool HasLooseElements(const MemoryOperand& operand) {
  return operand.pattern == Pattern::kGather || operand.pattern == Pattern::kBitString;
}

// Bytes of an element.
constexpr std::uint32_t ElementSize(const MemoryOperand& operand) {
  return HasLooseElements(operand) ? operand.size : operand.element_size;
}

// How far the bit that a register names moves the address: the register is a signed number of the
// operand's width, and the address moves by whole operands (SDM vol. 2, 3.1.1.9, "Bit(BitBase,
// BitOffset)").
inline std::uint64_t BitStringOffset(const MemoryOperand& operand, const RegisterFile& registers) {
  const unsigned bits = 8 * operand.size;
  const unsigned shift = 64 - bits;
  const auto offset =
      static_cast<std::int64_t>(registers.gpr[operand.bit_offset] << shift) >> shift;
  return static_cast<std::uint64_t>(offset >> std::countr_zero(bits)) * operand.size;
}

// Calls visit(linear address) for each element that the operand touches, in the order of lanes.
template <class Visit>
void ForEachElement(const MemoryOperand& operand, const RegisterFile& registers,
                    std::uint64_t next_rip, const VectorState& vectors, Visit&& visit) {
  const std::uint64_t effective = EffectiveAddress(operand, registers, next_rip);
  if (operand.pattern == Pattern::kBitString) {
    visit(LinearAddress(operand, registers, effective + BitStringOffset(operand, registers)));
    return;
  }
  if (operand.pattern == Pattern::kGather) {
    for (unsigned lane = 0; lane < operand.element_count; ++lane) {
      if (!IsLaneSet(operand, lane, vectors)) continue;
      std::uint64_t index =
          vectors.Vector(operand.index, lane * operand.index_size, operand.index_size);
      if (operand.index_size == 4)
        index = static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(index)});
      visit(LinearAddress(operand, registers, effective + index * operand.scale));
    }
    return;
  }
  const std::uint64_t start = LinearAddress(operand, registers, effective);
  unsigned touched = 0;  // so far
  for (unsigned element = 0; element < operand.element_count; ++element) {
    bool is_set = false;
    const unsigned lanes =
        operand.pattern == Pattern::kLanes ? operand.lane_count : operand.element_count;
    for (unsigned lane = element; lane < lanes && !is_set; lane += operand.element_count)
      is_set = IsLaneSet(operand, lane, vectors);
    if (!is_set) continue;
    const unsigned at = operand.pattern == Pattern::kCompressed ? touched++ : element;
    visit(start + std::uint64_t{at} * operand.element_size);
  }
}

}  // namespace trapline
