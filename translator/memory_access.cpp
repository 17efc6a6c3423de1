#include "translator/memory_access.h"

#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace trapline {
namespace {

constexpr std::uint64_t kDirectionFlag = 1u << 10;

constexpr unsigned kComponents = 64;
constexpr unsigned kComponentSse = 1;
constexpr unsigned kComponentAvx = 2;
constexpr unsigned kComponentOpmask = 5;
constexpr unsigned kComponentZmmHigh = 6;
constexpr unsigned kComponentZmm16 = 7;
constexpr std::uint64_t kLegacySize = 512;
constexpr std::uint64_t kXstateBvOffset = 512;
constexpr std::uint64_t kExtendedOffset = 576;

// Where the processor keeps each component of its extended state (CPUID leaf 0dh).
struct XsaveLayout {
  std::uint64_t enabled = 0;  // XCR0
  struct {
    std::uint32_t offset = 0;
    std::uint32_t size = 0;
    bool aligned = false;  // to 64 bytes in compacted format
  } components[kComponents];

  XsaveLayout() {
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    constexpr unsigned kOsxsave = 1u << 27;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kOsxsave) == 0) return;
    asm("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
    enabled = eax | std::uint64_t{edx} << 32;
    for (unsigned i = 2; i < kComponents; ++i) {
      if (__get_cpuid_count(0xd, i, &eax, &ebx, &ecx, &edx) == 0) break;
      components[i] = {ebx, eax, (ecx & 2) != 0};
    }
  }
};

const XsaveLayout& Layout() {
  static const XsaveLayout layout;
  return layout;
}

std::uint64_t ReadLittleEndian(const unsigned char* from, unsigned size) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, size);
  return value;
}

// Reads registers out of an XSAVE image in standard format.
class VectorState {
 public:
  explicit VectorState(const unsigned char* image) : image_(image) {}

  bool available() const { return image_ != nullptr; }

  std::uint64_t Opmask(unsigned number) const {
    const unsigned char* component = Component(kComponentOpmask);
    return component == nullptr ? 0 : ReadLittleEndian(component + 8 * number, 8);
  }

  // Bytes [offset, offset + size) of vector register `number`, inside one 16-byte part; size 1
  // to 8.
  std::uint64_t Vector(unsigned number, unsigned offset, unsigned size) const {
    const unsigned char* from = nullptr;
    if (number >= 16) {
      from = Component(kComponentZmm16);
      if (from != nullptr) from += 64 * (number - 16) + offset;
    } else if (offset < 16) {
      from = Component(kComponentSse);
      if (from != nullptr) from += 16 * number + offset;
    } else if (offset < 32) {
      from = Component(kComponentAvx);
      if (from != nullptr) from += 16 * number + offset - 16;
    } else {
      from = Component(kComponentZmmHigh);
      if (from != nullptr) from += 32 * number + offset - 32;
    }
    return from == nullptr ? 0 : ReadLittleEndian(from, size);
  }

  std::uint64_t Mmx(unsigned number) const {
    if ((Present() & 1) == 0) return 0;
    // The image holds st0 to st7; MMX registers are the physical ones.
    const unsigned top = image_[3] >> 3 & 7;
    return ReadLittleEndian(image_ + 32 + 16 * ((number - top) & 7), 8);
  }

 private:
  std::uint64_t Present() const { return ReadLittleEndian(image_ + kXstateBvOffset, 8); }

  // Null when the component is in its initial state, all zeros.
  const unsigned char* Component(unsigned number) const {
    if ((Present() >> number & 1) == 0) return nullptr;
    return image_ + (number == kComponentSse ? 160 : Layout().components[number].offset);
  }

  const unsigned char* image_;
};

class AccessBuilder {
 public:
  AccessBuilder(const Instruction& instruction, const RegisterFile& registers)
      : instruction_(instruction), registers_(registers), vectors_(registers.xsave) {}

  MemoryAccessList Run() {
    if (!instruction_.effects_known) list_.SetIncomplete();
    for (const MemoryOperand& operand : instruction_.memory()) Add(operand);
    return list_;
  }

 private:
  std::uint64_t Base(const MemoryOperand& operand) const {
    if (operand.base == kNoRegister) return 0;
    if (operand.base == kRip) return registers_.rip + instruction_.length;
    return registers_.gpr[operand.base];
  }

  std::uint64_t Linear(const MemoryOperand& operand, std::uint64_t effective) const {
    if (operand.address_is_32_bits) effective &= 0xffffffff;
    if (operand.segment == Segment::kFs) effective += registers_.fs_base;
    if (operand.segment == Segment::kGs) effective += registers_.gs_base;
    return operand.alignment == 0 ? effective : effective & ~std::uint64_t{operand.alignment - 1u};
  }

  void Emit(const MemoryOperand& operand, std::uint64_t address, std::uint64_t size) {
    if (size == 0) return;
    list_.Add({address, size, operand.reads, operand.writes, instruction_.atomic});
  }

  bool Lane(const MemoryOperand& operand, unsigned lane) const {
    switch (operand.mask) {
      case MaskKind::kNone:
        return true;
      case MaskKind::kOpmask:
        return (vectors_.Opmask(operand.mask_register) >> lane & 1) != 0;
      case MaskKind::kVector: {
        const unsigned size = operand.mask_element_size;
        return (vectors_.Vector(operand.mask_register, lane * size + size - 1, 1) & 0x80) != 0;
      }
      case MaskKind::kMmx:
        return (vectors_.Mmx(operand.mask_register) >> (8 * lane + 7) & 1) != 0;
    }
    return true;
  }

  unsigned SetLanes(const MemoryOperand& operand) const {
    unsigned count = 0;
    for (unsigned lane = 0; lane < operand.element_count; ++lane) count += Lane(operand, lane);
    return count;
  }

  void Add(const MemoryOperand& operand) {
    if ((operand.mask != MaskKind::kNone || operand.pattern == Pattern::kGather) &&
        !vectors_.available()) {
      list_.SetIncomplete();
      return;
    }
    std::uint64_t effective = Base(operand) + static_cast<std::uint64_t>(operand.displacement);
    if (operand.index != kNoRegister && operand.pattern != Pattern::kGather) {
      std::uint64_t index = registers_.gpr[operand.index];
      if (operand.implicit) index &= 0xff;  // xlat
      effective += index * operand.scale;
    }
    switch (operand.pattern) {
      case Pattern::kWhole:
        Emit(operand, Linear(operand, effective), operand.size);
        break;
      case Pattern::kRepeated:
        AddRepeated(operand, effective);
        break;
      case Pattern::kBitString:
        Emit(operand, Linear(operand, effective + BitOffset(operand)), operand.size);
        break;
      case Pattern::kGather:
        AddGather(operand, effective);
        break;
      case Pattern::kLanes:
        AddLanes(operand, Linear(operand, effective));
        break;
      case Pattern::kCompressed:
        Emit(operand, Linear(operand, effective),
             std::uint64_t{operand.element_size} * SetLanes(operand));
        break;
      case Pattern::kXsaveArea:
      case Pattern::kXsaveCompact:
        AddXsave(operand, Linear(operand, effective));
        break;
    }
  }

  void AddRepeated(const MemoryOperand& operand, std::uint64_t effective) {
    std::uint64_t count = 1;
    if (instruction_.repeat != Repeat::kNone) {
      count = registers_.gpr[kRcx];
      if (operand.address_is_32_bits) count &= 0xffffffff;
      const bool one_at_a_time = instruction_.repeat != Repeat::kRep;
      if (one_at_a_time && count > 1) count = 1;
    }
    const std::uint64_t start = Linear(operand, effective);
    const bool down = (registers_.rflags & kDirectionFlag) != 0;
    Emit(operand, down ? start - (count - 1) * operand.size : start, count * operand.size);
  }

  // The bit offset is a signed number of the operand's width; whole operands of it move the
  // address.
  std::uint64_t BitOffset(const MemoryOperand& operand) const {
    const unsigned bits = 8 * operand.size;
    const unsigned shift = 64 - bits;
    const auto offset =
        static_cast<std::int64_t>(registers_.gpr[instruction_.reg()] << shift) >> shift;
    return static_cast<std::uint64_t>(offset >> std::countr_zero(bits)) * operand.size;
  }

  void AddGather(const MemoryOperand& operand, std::uint64_t base) {
    for (unsigned lane = 0; lane < operand.element_count; ++lane) {
      if (!Lane(operand, lane)) continue;
      std::uint64_t index =
          vectors_.Vector(operand.index, lane * operand.index_size, operand.index_size);
      if (operand.index_size == 4) {
        index = static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(index)});
      }
      Emit(operand, Linear(operand, base + index * operand.scale), operand.size);
    }
  }

  bool Touched(const MemoryOperand& operand, unsigned element) const {
    for (unsigned lane = element; lane < operand.lane_count; lane += operand.element_count) {
      if (Lane(operand, lane)) return true;
    }
    return false;
  }

  void AddLanes(const MemoryOperand& operand, std::uint64_t start) {
    unsigned element = 0;
    while (element < operand.element_count) {
      const unsigned first = element;
      while (element < operand.element_count && Touched(operand, element)) ++element;
      const unsigned size = operand.element_size;
      Emit(operand, start + first * size, std::uint64_t{element - first} * size);
      if (element == first) ++element;
    }
  }

  // The legacy region, the part of the header that is used, and the selected components. For writes
  // the first eight bytes of the header are read and written.
  void AddXsave(const MemoryOperand& operand, std::uint64_t start) {
    const XsaveLayout& layout = Layout();
    const std::uint64_t selected =
        ((registers_.gpr[kRax] & 0xffffffff) | registers_.gpr[kRdx] << 32) & layout.enabled;
    const bool compact = operand.pattern == Pattern::kXsaveCompact;
    if ((selected & 3) != 0) Emit(operand, start, kLegacySize);
    MemoryOperand header = operand;
    header.reads = !compact;
    Emit(header, start + kXstateBvOffset,
         operand.writes && !compact ? 8
         : operand.writes           ? 16
                                    : 64);
    std::uint64_t next = kExtendedOffset;
    for (unsigned i = 2; i < kComponents - 1; ++i) {
      if ((selected >> i & 1) == 0) continue;
      const auto& component = layout.components[i];
      if (component.aligned) next = (next + 63) & ~std::uint64_t{63};
      Emit(operand, start + (compact ? next : component.offset), component.size);
      next += component.size;
    }
  }

  const Instruction& instruction_;
  const RegisterFile& registers_;
  VectorState vectors_;
  MemoryAccessList list_;
};

}  // namespace

void MemoryAccessList::Add(const MemoryAccess& access) {
  if (size_ == kCapacity) {
    complete_ = false;
    return;
  }
  accesses_[size_++] = access;
}

MemoryAccessList Accesses(const Instruction& instruction, const RegisterFile& registers) {
  return AccessBuilder(instruction, registers).Run();
}

bool NeedsVectors(const Instruction& instruction) {
  return std::ranges::any_of(instruction.memory(), [](const MemoryOperand& operand) {
    return operand.mask != MaskKind::kNone || operand.pattern == Pattern::kGather;
  });
}

}  // namespace trapline
