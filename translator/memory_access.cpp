#include "translator/memory_access.h"

#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>
#include <bit>

#include "translator/elements.h"

namespace trapline {
namespace {

constexpr std::uint64_t kDirectionFlag = 1u << 10;

constexpr unsigned kComponents = 64;
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

class AccessBuilder {
 public:
  AccessBuilder(const Instruction& instruction, const RegisterFile& registers)
      : instruction_(instruction),
        registers_(registers),
        vectors_(registers.xsave, LayoutOfVectors()) {}

  MemoryAccessList Run() {
    if (!instruction_.effects_known) list_.SetIncomplete();
    for (const MemoryOperand& operand : instruction_.memory()) Add(operand);
    return list_;
  }

 private:
  std::uint64_t NextRip() const { return registers_.rip + instruction_.length; }
  std::uint64_t Linear(const MemoryOperand& operand, std::uint64_t effective) const {
    return LinearAddress(operand, registers_, effective);
  }

  void Emit(const MemoryOperand& operand, std::uint64_t address, std::uint64_t size) {
    if (size == 0) return;
    list_.Add({address, size, operand.reads, operand.writes, instruction_.atomic});
  }

  void Add(const MemoryOperand& operand) {
    if ((operand.mask != MaskKind::kNone || operand.pattern == Pattern::kGather) &&
        !vectors_.available()) {
      list_.SetIncomplete();
      return;
    }
    const std::uint64_t effective = EffectiveAddress(operand, registers_, NextRip());
    switch (operand.pattern) {
      case Pattern::kWhole:
        Emit(operand, Linear(operand, effective), operand.size);
        break;
      case Pattern::kRepeated:
        AddRepeated(operand, effective);
        break;
      case Pattern::kBitString:
      case Pattern::kGather:
      case Pattern::kLanes:
      case Pattern::kCompressed:
        AddElements(operand);
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

  // Neighbours are one access, but not those of a gather, which are several anyway.
  void AddElements(const MemoryOperand& operand) {
    const std::uint64_t size = ElementSize(operand);
    std::uint64_t start = 0, end = 0;
    ForEachElement(operand, registers_, NextRip(), vectors_, [&](std::uint64_t address) {
      if (address != end || operand.pattern == Pattern::kGather) {
        Emit(operand, start, end - start);
        start = address;
      }
      end = address + size;
    });
    Emit(operand, start, end - start);
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

bool IsStack(const MemoryOperand& operand) {
  return operand.segment == Segment::kNone && (operand.base == kRsp || operand.base == kRbp);
}

// Legacy instructions with 16 bytes of memory that may lie anywhere.
bool TakesAnyAddress(const Instruction& in) {
  switch (in.map) {
    case kMap0F:
      return in.opcode == 0x10 || in.opcode == 0x11 ||                            // movups, movupd
             in.opcode == 0xf0 ||                                                 // lddqu
             (in.mandatory == 0xf3 && (in.opcode == 0x6f || in.opcode == 0x7f));  // movdqu
    case kMap0F3A:
      return in.opcode >= 0x60 && in.opcode <= 0x63;  // pcmpestrm and its kin
    default:
      return false;
  }
}

bool IsSha(const Instruction& in) {
  return (in.map == kMap0F38 && in.opcode >= 0xc8 && in.opcode <= 0xcd) ||
         (in.map == kMap0F3A && in.opcode == 0xcc);
}

// AMD's processors take any address for those (measured on Zen 4), Intel's do not.
bool ShaTakesAnyAddress() {
  static const bool takes = [] {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0 || ebx != signature_INTEL_ebx;
  }();
  return takes;
}

// Of AVX and AVX-512: movaps, movapd, movdqa, and those that bypass the caches.
bool IsAlignedMove(const Instruction& in) {
  if (in.map == kMap0F38) return in.opcode == 0x2a && in.mandatory == 0x66;  // movntdqa
  if (in.map != kMap0F) return false;
  switch (in.opcode) {
    case 0x28:
    case 0x29:
    case 0x2b:
    case 0xe7:
      return true;
    case 0x6f:
    case 0x7f:
      return in.mandatory == 0x66;
    default:
      return false;
  }
}

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

std::uint32_t RequiredAlignment(const Instruction& in, const MemoryOperand& operand) {
  const bool saves =
      operand.pattern == Pattern::kXsaveArea || operand.pattern == Pattern::kXsaveCompact;
  if (saves) return 64;
  if (in.encoding == Encoding::kVex || in.encoding == Encoding::kEvex)
    return IsAlignedMove(in) ? in.vector_length : 1;
  if (in.encoding != Encoding::kLegacy || in.map == kMapOneByte) return 1;
  if (operand.implicit) return in.map == kMap0F38 ? operand.size : 1;           // movdir64b
  if (in.map == kMap0F && in.opcode == 0xae && operand.size == 512) return 16;  // fxsave, fxrstor
  if (IsSha(in) && ShaTakesAnyAddress()) return 1;
  return operand.size == 16 && !TakesAnyAddress(in) ? 16 : 1;
}

Refusal RefusalOf(const Instruction& instruction, const RegisterFile& registers) {
  Refusal refusal = Refusal::kNone;
  for (const MemoryOperand& operand : instruction.memory()) {
    const std::uint64_t address =
        LinearAddress(operand, registers,
                      EffectiveAddress(operand, registers, registers.rip + instruction.length));
    if (IsStack(operand) && !IsCanonical(address)) return Refusal::kStack;
    if (address % RequiredAlignment(instruction, operand) != 0) refusal = Refusal::kProtection;
  }
  for (const MemoryAccess& access : Accesses(instruction, registers)) {
    if (!IsCanonical(access.address) || !IsCanonical(access.address + access.size - 1))
      refusal = Refusal::kProtection;
  }
  return refusal;
}

const VectorLayout& LayoutOfVectors() {
  static const VectorLayout layout = [] {
    const auto offset = [](unsigned component) { return Layout().components[component].offset; };
    return VectorLayout{.avx = offset(kComponentAvx),
                        .opmask = offset(kComponentOpmask),
                        .zmm_high = offset(kComponentZmmHigh),
                        .zmm16 = offset(kComponentZmm16)};
  }();
  return layout;
}

bool NeedsVectors(const Instruction& instruction) {
  return std::ranges::any_of(instruction.memory(), [](const MemoryOperand& operand) {
    return operand.mask != MaskKind::kNone || operand.pattern == Pattern::kGather;
  });
}

}  // namespace trapline
