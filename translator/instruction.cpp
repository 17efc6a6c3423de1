#include "translator/instruction.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "translator/opcode_table.h"

namespace trapline {
namespace {

// Bytes from the front; every read beyond the end makes the whole decoding fail.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes)
      : bytes_(bytes.first(std::min(bytes.size(), kMaximumInstructionLength))) {}

  bool ok() const { return ok_; }
  std::uint8_t position() const { return static_cast<std::uint8_t>(position_); }
  std::uint8_t Peek() const { return position_ < bytes_.size() ? bytes_[position_] : 0; }
  bool AtEnd() const { return position_ >= bytes_.size(); }

  std::uint8_t Byte() { return static_cast<std::uint8_t>(Unsigned(1)); }
  std::uint64_t Unsigned(unsigned size) {
    if (bytes_.size() - position_ < size) {
      ok_ = false;
      position_ = bytes_.size();
      return 0;
    }
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + position_, size);
    position_ += size;
    return value;
  }
  std::int64_t Signed(unsigned size) {
    if (size == 0) return 0;
    const unsigned shift = 64 - 8 * size;
    return static_cast<std::int64_t>(Unsigned(size) << shift) >> shift;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t position_ = 0;
  bool ok_ = true;
};

constexpr std::uint8_t PrefixSet(std::uint8_t mandatory) {
  switch (mandatory) {
    case 0x66:
      return k66;
    case 0xf3:
      return kF3;
    case 0xf2:
      return kF2;
    default:
      return kNp;
  }
}

constexpr std::uint8_t kPrefixOfPp[4] = {0, 0x66, 0xf3, 0xf2};

class Decoder {
 public:
  Decoder(std::span<const std::uint8_t> bytes, std::uint64_t rip) : in_(bytes), rip_(rip) {}

  std::optional<Instruction> Run() {
    if (!ReadPrefixes() || !ReadOpcode() || !in_.ok()) return std::nullopt;
    if (out_.encoding == Encoding::k3dNow) {
      if (!ReadModrm()) return std::nullopt;
      static constexpr OpcodeRow kRow{.effect = Effect::kRead, .size = Size{8}};
      row_ = &kRow;
      AddModrmOperand();
      out_.immediate_offset = in_.position();
      out_.opcode = in_.Byte();
    } else {
      row_ = FindRow();
      if (row_ == nullptr) return std::nullopt;
      if (row_->modrm && !ReadModrm()) return std::nullopt;
      if (!CheckEvex()) return std::nullopt;
      AddOperands();
      if (!ReadImmediate()) return std::nullopt;
    }
    if (!in_.ok()) return std::nullopt;
    out_.length = in_.position();
    if (relative_) out_.target = rip_ + out_.length + static_cast<std::uint64_t>(immediate_);
    SetAtomic();
    return out_;
  }

 private:
  bool ReadPrefixes() {
    for (;;) {
      const std::uint8_t byte = in_.Peek();
      switch (byte) {
        case 0x66:
          out_.operand_size_prefix = true;
          break;
        case 0x67:
          out_.address_size_prefix = true;
          break;
        case 0xf0:
          out_.lock_prefix = true;
          break;
        case 0xf2:
        case 0xf3:
          out_.repeat_prefix = byte;
          break;
        case 0x64:
          out_.segment = Segment::kFs;
          break;
        case 0x65:
          out_.segment = Segment::kGs;
          break;
        case 0x26:
        case 0x2e:
        case 0x36:
        case 0x3e:
          break;  // no meaning in 64-bit mode, and they do not undo fs and gs
        default:
          if ((byte & 0xf0) != 0x40) return !in_.AtEnd();
          // A REX prefix that another prefix follows is void.
          in_.Byte();
          if (in_.AtEnd()) return false;
          if (!IsPrefix(in_.Peek())) {
            out_.rex = byte;
            return true;
          }
          continue;
      }
      in_.Byte();
      if (in_.AtEnd()) return false;
    }
  }

  static bool IsPrefix(std::uint8_t byte) {
    switch (byte) {
      case 0x66:
      case 0x67:
      case 0xf0:
      case 0xf2:
      case 0xf3:
      case 0x64:
      case 0x65:
      case 0x26:
      case 0x2e:
      case 0x36:
      case 0x3e:
        return true;
      default:
        return (byte & 0xf0) == 0x40;
    }
  }

  bool ReadOpcode() {
    out_.opcode_offset = in_.position();
    const std::uint8_t byte = in_.Byte();
    switch (byte) {
      case 0xc4:
        return ReadVex3();
      case 0xc5:
        return ReadVex2();
      case 0x62:
        return ReadEvex();
      case 0x8f:
        if ((in_.Peek() & 0x1f) >= 8) return ReadXop();
        break;
      default:
        break;
    }
    out_.mandatory = out_.repeat_prefix;
    if (out_.mandatory == 0 && out_.operand_size_prefix) out_.mandatory = 0x66;
    out_.vector_length = 16;
    out_.opcode = byte;
    if (byte != 0x0f) return true;
    out_.opcode = in_.Byte();
    out_.map = kMap0F;
    if (out_.opcode == 0x38 || out_.opcode == 0x3a) {
      out_.map = out_.opcode == 0x38 ? kMap0F38 : kMap0F3A;
      out_.opcode = in_.Byte();
    } else if (out_.opcode == 0x0f) {
      out_.encoding = Encoding::k3dNow;
    }
    return true;
  }

  // VEX, EVEX and XOP exclude these prefixes.
  bool HasLegacyPrefix() const {
    return out_.rex != 0 || out_.operand_size_prefix || out_.repeat_prefix != 0 || out_.lock_prefix;
  }

  // R, X and B from the inverted top bits of a payload byte.
  void SetRexBits(std::uint8_t inverted, bool w) {
    const unsigned bits = (inverted >> 5 ^ 7) & 7;  // R X B
    out_.rex = static_cast<std::uint8_t>(0x40 | bits | (w ? 8 : 0));
  }

  bool ReadVex2() {
    if (HasLegacyPrefix()) return false;
    const std::uint8_t payload = in_.Byte();
    out_.encoding = Encoding::kVex;
    out_.map = kMap0F;
    SetRexBits(static_cast<std::uint8_t>(payload | 0x60), false);
    SetVexTail(payload);
    return true;
  }

  bool ReadVex3() {
    if (HasLegacyPrefix()) return false;
    const std::uint8_t first = in_.Byte();
    const std::uint8_t second = in_.Byte();
    out_.encoding = Encoding::kVex;
    out_.map = first & 0x1f;
    SetRexBits(first, (second & 0x80) != 0);
    SetVexTail(second);
    return out_.map >= kMap0F && out_.map <= kMap0F3A;
  }

  bool ReadXop() {
    if (HasLegacyPrefix()) return false;
    const std::uint8_t first = in_.Byte();
    const std::uint8_t second = in_.Byte();
    out_.encoding = Encoding::kXop;
    out_.map = first & 0x1f;
    SetRexBits(first, (second & 0x80) != 0);
    SetVexTail(second);
    return out_.map >= kXopMap8 && out_.map <= kXopMapA;
  }

  // vvvv, L and pp, then the opcode.
  void SetVexTail(std::uint8_t payload) {
    out_.vvvv = static_cast<std::uint8_t>((payload >> 3 & 15) ^ 15);
    out_.vector_length = (payload & 4) != 0 ? 32 : 16;
    out_.mandatory = kPrefixOfPp[payload & 3];
    out_.opcode = in_.Byte();
  }

  bool ReadEvex() {
    if (HasLegacyPrefix()) return false;
    const std::uint8_t p0 = in_.Byte();
    const std::uint8_t p1 = in_.Byte();
    const std::uint8_t p2 = in_.Byte();
    if ((p0 & 8) != 0 || (p1 & 4) == 0) return false;
    out_.encoding = Encoding::kEvex;
    out_.map = p0 & 7;
    SetRexBits(p0, (p1 & 0x80) != 0);
    out_.mandatory = kPrefixOfPp[p1 & 3];
    evex_b_ = (p2 & 0x10) != 0;
    evex_high_vvvv_ = (p2 & 8) == 0;
    out_.vvvv = static_cast<std::uint8_t>(((p1 >> 3 & 15) ^ 15) | (evex_high_vvvv_ ? 16 : 0));
    out_.opmask = p2 & 7;
    evex_length_ = p2 >> 5 & 3;
    out_.vector_length = static_cast<std::uint16_t>(evex_length_ == 3 ? 64 : 16 << evex_length_);
    out_.opcode = in_.Byte();
    return true;
  }

  const OpcodeRow* FindRow() const {
    const std::uint8_t encoding = out_.encoding == Encoding::kEvex     ? kEvexed
                                  : out_.encoding == Encoding::kLegacy ? kSse
                                                                       : kVexed;
    const std::uint8_t prefix = PrefixSet(out_.mandatory);
    const std::uint8_t w = out_.rex_w() ? 2 : 1;
    const std::uint8_t modrm = in_.Peek();
    const bool memory = modrm >> 6 != 3;
    for (const OpcodeRow& row : RowsOf(out_.map, out_.opcode)) {
      if ((row.encodings & encoding) == 0 || (row.prefixes & prefix) == 0 ||
          (row.w_values & w) == 0)
        continue;
      if (row.modrm) {
        if (in_.AtEnd()) return nullptr;
        if ((row.registers >> (modrm >> 3 & 7) & 1) == 0) continue;
        if (!(memory ? row.memory_form : row.register_form)) continue;
      }
      return &row;
    }
    return nullptr;
  }

  // With memory: broadcast only where the row has it, and no reserved length.
  bool CheckEvex() const {
    if (out_.encoding != Encoding::kEvex) return true;
    if (!out_.modrm_is_memory()) return true;
    if (evex_length_ == 3) return false;
    return !evex_b_ || row_->broadcast;
  }

  bool ReadModrm() {
    out_.has_modrm = true;
    out_.modrm_offset = in_.position();
    out_.modrm = in_.Byte();
    const std::uint8_t mod = out_.modrm >> 6;
    // mov to and from control and debug registers takes any mod for 3 (SDM vol. 2, MOV).
    const bool control =
        out_.encoding == Encoding::kLegacy && out_.map == kMap0F && (out_.opcode & 0xfc) == 0x20;
    if (control) out_.modrm |= 0xc0;
    if (mod == 3 || control) return in_.ok();
    std::uint8_t rm = out_.modrm & 7;
    const std::uint8_t extend_base = (out_.rex & 1) != 0 ? 8 : 0;
    const std::uint8_t extend_index = (out_.rex & 2) != 0 ? 8 : 0;
    MemoryOperand& memory = modrm_operand_;
    memory.segment = out_.segment;
    memory.address_is_32_bits = out_.address_size_prefix;
    unsigned displacement = mod == 1 ? 1 : mod == 2 ? 4 : 0;
    if (rm == 4) {
      const std::uint8_t sib = in_.Byte();
      memory.scale = static_cast<std::uint8_t>(1 << (sib >> 6));
      memory.index = static_cast<std::uint8_t>((sib >> 3 & 7) | extend_index);
      rm = sib & 7;
      memory.base = static_cast<std::uint8_t>(rm | extend_base);
      if (rm == 5 && mod == 0) {
        memory.base = kNoRegister;
        displacement = 4;
      }
    } else if (rm == 5 && mod == 0) {
      memory.base = kRip;
      displacement = 4;
    } else {
      memory.base = static_cast<std::uint8_t>(rm | extend_base);
    }
    out_.base = memory.base;
    if (memory.index != kRsp) out_.index = memory.index;
    if (displacement != 0) {
      out_.displacement_offset = in_.position();
      out_.displacement_size = static_cast<std::uint8_t>(displacement);
      memory.displacement = in_.Signed(displacement);
    }
    return in_.ok();
  }

  unsigned OperandSize() const { return out_.rex_w() ? 8 : out_.operand_size_prefix ? 2 : 4; }
  unsigned StackSize() const { return out_.operand_size_prefix && !out_.rex_w() ? 2 : 8; }

  unsigned LaneSize(Lane lane) const {
    switch (lane) {
      case Lane::kW48:
        return out_.rex_w() ? 8 : 4;
      case Lane::kW12:
        return out_.rex_w() ? 2 : 1;
      case Lane::kPrefix:
        return out_.mandatory == 0x66 || out_.mandatory == 0xf2 ? 8 : 4;
      default:
        return static_cast<unsigned>(lane);
    }
  }

  unsigned SizeInBytes(Size size) const {
    const unsigned vector = out_.vector_length;
    const bool narrow = out_.operand_size_prefix && !out_.rex_w();
    switch (size) {
      case Size::kOperand:
        return OperandSize();
      case Size::kOperandNo16:
        return out_.rex_w() ? 8 : 4;
      case Size::kStackOperand:
        return StackSize();
      case Size::kFarPointer:
        return 2 + OperandSize();
      case Size::kTwiceY:
        return out_.rex_w() ? 16 : 8;
      case Size::kVector:
        return vector;
      case Size::kVectorHalf:
        return vector / 2;
      case Size::kVectorQuarter:
        return vector / 4;
      case Size::kVectorEighth:
        return vector / 8;
      case Size::kFloat:
        return out_.mandatory == 0xf3 ? 4 : out_.mandatory == 0xf2 ? 8 : vector;
      case Size::kDuplicate:
        return vector == 16 ? 8 : vector;
      case Size::kKmov:
        return out_.mandatory == 0x66 ? (out_.rex_w() ? 4 : 1) : out_.rex_w() ? 8 : 2;
      case Size::kEnvironment:
        return narrow ? 14 : 28;
      case Size::kX87State:
        return narrow ? 94 : 108;
      default:
        return static_cast<unsigned>(size);
    }
  }

  void Add(MemoryOperand operand, bool reads, bool writes) {
    operand.reads = reads;
    operand.writes = writes;
    out_.operands[out_.operand_count++] = operand;
  }

  // `size` bytes at rsp + offset.
  void AddStack(std::int64_t offset, unsigned size, bool write, std::uint8_t base = kRsp) {
    MemoryOperand stack;
    stack.implicit = true;
    stack.base = base;
    stack.displacement = offset;
    stack.size = size;
    Add(stack, !write, write);
  }

  MemoryOperand String(std::uint8_t base, Segment segment) const {
    MemoryOperand memory;
    memory.implicit = true;
    memory.segment = segment;
    memory.base = base;
    memory.address_is_32_bits = out_.address_size_prefix;
    memory.pattern = Pattern::kRepeated;
    // Input and output have no 8-byte form.
    const bool port = row_->special == Special::kInString || row_->special == Special::kOutString;
    memory.size = (out_.opcode & 1) == 0 ? 1 : port ? std::min(OperandSize(), 4u) : OperandSize();
    return memory;
  }

  void AddModrmOperand() {
    if (!out_.modrm_is_memory()) return;
    const bool reads = row_->effect == Effect::kRead || row_->effect == Effect::kReadWrite;
    const bool writes = row_->effect == Effect::kWrite || row_->effect == Effect::kReadWrite;
    MemoryOperand memory = modrm_operand_;
    memory.size = SizeInBytes(row_->size);
    const unsigned lane = LaneSize(row_->lane);
    const unsigned full_size = memory.size;
    const bool broadcast = evex_b_ && row_->broadcast;
    if (broadcast) memory.size = lane;
    // EVEX counts 8-bit displacements in units of the operand, or of one element (SDM vol.
    // 2, 2.7.5).
    if (out_.encoding == Encoding::kEvex && out_.displacement_size == 1) {
      const bool one_element = row_->masking == Masking::kCompressed || IsGather();
      memory.displacement *= one_element ? lane : memory.size;
    }
    if (IsGather()) {
      SetGather(memory, lane);
    } else {
      // In the address rsp cannot be an index.
      if (memory.index == kRsp) memory.index = kNoRegister;
      SetMask(memory, lane, full_size, broadcast);
    }
    switch (row_->special) {
      case Special::kPop:
        if (memory.base == kRsp) memory.displacement += StackSize();
        break;
      case Special::kBitString:
        memory.pattern = Pattern::kBitString;
        memory.bit_offset = out_.reg();
        break;
      case Special::kXsave:
        memory.pattern = Pattern::kXsaveArea;
        break;
      case Special::kXsaveCompact:
        memory.pattern = Pattern::kXsaveCompact;
        break;
      default:
        break;
    }
    if (reads || writes) Add(memory, reads, writes);
  }

  bool IsGather() const {
    return row_->special == Special::kGatherD || row_->special == Special::kGatherQ;
  }

  void SetGather(MemoryOperand& memory, unsigned lane) const {
    memory.pattern = Pattern::kGather;
    if (evex_high_vvvv_) memory.index |= 16;
    memory.index_size = row_->special == Special::kGatherD ? 4 : 8;
    memory.size = lane;
    memory.element_size = static_cast<std::uint8_t>(lane);
    memory.element_count =
        static_cast<std::uint8_t>(out_.vector_length / std::max<unsigned>(lane, memory.index_size));
    if (out_.encoding == Encoding::kEvex) {
      memory.mask = MaskKind::kOpmask;
      memory.mask_register = out_.opmask;
    } else {
      memory.mask = MaskKind::kVector;
      memory.mask_register = out_.vvvv;
      memory.mask_element_size = static_cast<std::uint8_t>(lane);
    }
  }

  void SetMask(MemoryOperand& memory, unsigned lane, unsigned full_size, bool broadcast) const {
    if (row_->special == Special::kVectorMask) {
      memory.pattern = Pattern::kLanes;
      memory.mask = MaskKind::kVector;
      memory.mask_register = out_.vvvv;
      memory.mask_element_size = memory.element_size = static_cast<std::uint8_t>(lane);
      memory.element_count = memory.lane_count = static_cast<std::uint8_t>(memory.size / lane);
      return;
    }
    if (out_.encoding != Encoding::kEvex || out_.opmask == 0 || lane == 0) return;
    if (row_->masking == Masking::kUnmasked) return;
    memory.mask = MaskKind::kOpmask;
    memory.mask_register = out_.opmask;
    memory.element_size = static_cast<std::uint8_t>(lane);
    memory.element_count = static_cast<std::uint8_t>(full_size / lane);
    if (row_->masking == Masking::kCompressed) {
      memory.pattern = Pattern::kCompressed;
      return;
    }
    memory.pattern = Pattern::kLanes;
    memory.lane_count = memory.element_count;
    if (broadcast) memory.element_count = 1;
    if (row_->masking == Masking::kFolded) {
      memory.lane_count = static_cast<std::uint8_t>(out_.vector_length / lane);
    }
  }

  void AddOperands() {
    const unsigned operand = OperandSize();
    if (row_->special == Special::kPop && !row_->modrm) {
      AddStack(0, StackSize(), false);
      return;
    }
    if (row_->special == Special::kPop) AddStack(0, StackSize(), false);
    if (row_->modrm) AddModrmOperand();
    switch (row_->special) {
      case Special::kPush:
        AddStack(-std::int64_t{StackSize()}, StackSize(), true);
        break;
      case Special::kCall:
        AddStack(-8, 8, true);
        break;
      case Special::kFarCall:
        AddStack(-2 * std::int64_t{operand}, 2 * operand, true);
        break;
      case Special::kReturn:
        AddStack(0, 8, false);
        break;
      case Special::kFarReturn:
        AddStack(0, 2 * operand, false);
        break;
      case Special::kInterruptReturn:
        AddStack(0, 5 * operand, false);
        break;
      case Special::kLeave:
        AddStack(0, StackSize(), false, kRbp);
        break;
      case Special::kMoveString:
        SetRepeat();
        Add(String(kRsi, out_.segment), true, false);
        Add(String(kRdi, Segment::kNone), false, true);
        break;
      case Special::kCompareString:
        SetRepeat();
        Add(String(kRsi, out_.segment), true, false);
        Add(String(kRdi, Segment::kNone), true, false);
        break;
      case Special::kStoreString:
      case Special::kInString:
        SetRepeat();
        Add(String(kRdi, Segment::kNone), false, true);
        break;
      case Special::kLoadString:
      case Special::kOutString:
        SetRepeat();
        Add(String(kRsi, out_.segment), true, false);
        break;
      case Special::kScanString:
        SetRepeat();
        Add(String(kRdi, Segment::kNone), true, false);
        break;
      case Special::kXlat:
        AddXlat();
        break;
      case Special::kMaskedMove:
        AddMaskedMove();
        break;
      case Special::kMoveDirect64: {
        MemoryOperand destination;
        destination.implicit = true;
        destination.base = out_.reg();
        destination.address_is_32_bits = out_.address_size_prefix;
        destination.size = 64;
        // enqcmd and enqcmds write to a device.
        if (out_.mandatory == 0x66) Add(destination, false, true);
        break;
      }
      case Special::kUnknown:
        out_.effects_known = false;
        break;
      default:
        break;
    }
    if (out_.map == kMap0F && out_.opcode == 0x01 && out_.encoding == Encoding::kLegacy)
      SetSystemForm();
    out_.branch = static_cast<Branch>(row_->branch);
    relative_ = out_.branch == Branch::kJump || out_.branch == Branch::kCall ||
                out_.branch == Branch::kConditional;
  }

  // cmps and scas stop at a difference; for the others f2h means the same as f3h.
  void SetRepeat() {
    if (out_.repeat_prefix == 0) return;
    const bool compares =
        row_->special == Special::kCompareString || row_->special == Special::kScanString;
    out_.repeat = !compares                    ? Repeat::kRep
                  : out_.repeat_prefix == 0xf3 ? Repeat::kRepe
                                               : Repeat::kRepne;
  }

  void AddXlat() {
    MemoryOperand memory;
    memory.implicit = true;
    memory.segment = out_.segment;
    memory.base = kRbx;
    memory.index = kRax;  // al: see Accesses
    memory.address_is_32_bits = out_.address_size_prefix;
    memory.size = 1;
    Add(memory, true, false);
  }

  void AddMaskedMove() {
    const bool mmx = out_.encoding == Encoding::kLegacy && out_.mandatory == 0;
    MemoryOperand memory;
    memory.implicit = true;
    memory.segment = out_.segment;
    memory.base = kRdi;
    memory.address_is_32_bits = out_.address_size_prefix;
    memory.size = mmx ? 8 : 16;
    memory.pattern = Pattern::kLanes;
    memory.mask = mmx ? MaskKind::kMmx : MaskKind::kVector;
    memory.mask_register = mmx ? out_.modrm & 7 : out_.rm();
    memory.mask_element_size = memory.element_size = 1;
    memory.element_count = memory.lane_count = static_cast<std::uint8_t>(memory.size);
    Add(memory, false, true);
  }

  // The register forms of 0F 01: most touch no memory.
  void SetSystemForm() {
    if (out_.modrm_is_memory()) return;
    switch (out_.modrm) {
      case 0xfc: {  // clzero
        MemoryOperand line;
        line.implicit = true;
        line.base = kRax;
        line.segment = out_.segment;
        line.address_is_32_bits = out_.address_size_prefix;
        line.size = 64;
        line.alignment = 64;
        Add(line, false, true);
        break;
      }
      case 0xc0:
      case 0xc1:
      case 0xc2:
      case 0xc3:
      case 0xc4:
      case 0xc5:
      case 0xcf:  // VMX, PCONFIG, SGX
      case 0xd4:
      case 0xd7:
      case 0xd8:
      case 0xd9:
      case 0xda:
      case 0xdb:  // VMFUNC, ENCLU, SVM
        out_.effects_known = false;
        break;
      default:
        break;
    }
  }

  bool ReadImmediate() {
    Immediate kind = row_->immediate;
    const unsigned operand = OperandSize();
    unsigned size = 0;
    switch (kind) {
      case Immediate::kNone:
        break;
      case Immediate::k8:
      case Immediate::kRelative8:
        size = 1;
        break;
      case Immediate::k16:
      case Immediate::k8And8:
        size = 2;
        break;
      case Immediate::k16And8:
        size = 3;
        break;
      case Immediate::k32:
      case Immediate::kRelative32:
        size = 4;
        break;
      case Immediate::kZ:
      case Immediate::kRelativeZ:
        size = operand == 2 ? 2 : 4;
        break;
      case Immediate::kV:
        size = operand;
        break;
      case Immediate::kOffset:
        size = out_.address_size_prefix ? 4 : 8;
        break;
    }
    // With 66h Intel's processors ignore the prefix in near branches and AMD's cut rip to 16 bits.
    const bool near_branch = out_.branch != Branch::kNone && out_.branch != Branch::kOther &&
                             out_.branch != Branch::kSyscall && kind != Immediate::kRelativeZ;
    if (near_branch && out_.operand_size_prefix && !out_.rex_w()) return false;
    if (size != 0) {
      out_.immediate_offset = in_.position();
      out_.immediate_size = static_cast<std::uint8_t>(size);
    }
    if (kind == Immediate::kOffset) {
      MemoryOperand memory;
      memory.segment = out_.segment;
      memory.address_is_32_bits = out_.address_size_prefix;
      memory.displacement = static_cast<std::int64_t>(in_.Unsigned(size));
      memory.size = SizeInBytes(row_->size);
      Add(memory, row_->effect == Effect::kRead, row_->effect == Effect::kWrite);
      return in_.ok();
    }
    immediate_ = size == 3 ? static_cast<std::int64_t>(in_.Unsigned(3)) : in_.Signed(size);
    if (row_->special == Special::kEnter) AddEnter();
    return in_.ok();
  }

  // Pushes rbp; with nesting copies that many less one saved frame pointers and pushes its own.
  void AddEnter() {
    const std::int64_t size = StackSize();
    const std::int64_t level = immediate_ >> 16 & 31;
    if (level > 1)
      AddStack(-size * (level - 1), static_cast<unsigned>(size * (level - 1)), false, kRbp);
    const std::int64_t pushed = level == 0 ? 1 : 1 + level;
    AddStack(-size * pushed, static_cast<unsigned>(size * pushed), true);
  }

  void SetAtomic() {
    const bool one_byte_xchg = out_.map == kMapOneByte && (out_.opcode | 1) == 0x87;
    const bool conditional_add =
        out_.map == kMap0F38 && out_.encoding == Encoding::kVex && out_.opcode >= 0xe0;
    const bool remote =
        out_.map == kMap0F38 && out_.encoding == Encoding::kLegacy && out_.opcode == 0xfc;
    bool writes = false;
    for (const MemoryOperand& operand : out_.memory()) writes |= operand.reads && operand.writes;
    out_.atomic = writes && (out_.lock_prefix || one_byte_xchg || conditional_add || remote);
  }

  ByteReader in_;
  std::uint64_t rip_;
  Instruction out_;
  const OpcodeRow* row_ = nullptr;
  MemoryOperand modrm_operand_;
  bool evex_b_ = false;
  bool evex_high_vvvv_ = false;
  std::uint8_t evex_length_ = 0;
  bool relative_ = false;
  std::int64_t immediate_ = 0;
};

// The only operand in memory, if the instruction names it and a lea can compute its address; null
// otherwise.
const MemoryOperand* OnlyOperand(const Instruction& instruction) {
  if (instruction.branch != Branch::kNone || instruction.operand_count != 1) return nullptr;
  const MemoryOperand& operand = instruction.operands[0];
  return !operand.implicit && IsSimple(operand) ? &operand : nullptr;
}

}  // namespace

std::optional<Instruction> Decode(std::span<const std::uint8_t> bytes, std::uint64_t rip) {
  return Decoder(bytes, rip).Run();
}

bool OnlyReadsMemory(const Instruction& instruction) {
  return instruction.atomic && instruction.encoding == Encoding::kLegacy &&
         instruction.map == kMap0F && (instruction.opcode | 1) == 0xb1 &&  // cmpxchg
         instruction.reg() == kRax;
}

bool IsExchange(const Instruction& instruction) {
  if (instruction.encoding != Encoding::kLegacy || OnlyReadsMemory(instruction)) return false;
  const std::uint8_t opcode = instruction.opcode;
  if (instruction.map == kMapOneByte) return opcode == 0x86 || opcode == 0x87;  // xchg
  return instruction.map == kMap0F &&
         (opcode == 0xb0 || opcode == 0xb1 || opcode == 0xc7 ||  // cmpxchg
          opcode == 0xab || opcode == 0xba);                     // bts
}

bool IsConditionalMove(const Instruction& instruction) {
  return instruction.encoding == Encoding::kLegacy && instruction.map == kMap0F &&
         (instruction.opcode & 0xf0) == 0x40;
}

bool ConditionHolds(std::uint8_t opcode, std::uint64_t rflags) {
  const auto flag = [&](unsigned bit) { return (rflags >> bit & 1) != 0; };
  constexpr unsigned kCarry = 0, kParity = 2, kZero = 6, kSign = 7, kOverflow = 11;
  const bool less = flag(kSign) != flag(kOverflow);
  const bool holds[] = {flag(kOverflow), flag(kCarry),  flag(kZero), flag(kCarry) || flag(kZero),
                        flag(kSign),     flag(kParity), less,        less || flag(kZero)};
  return holds[opcode >> 1 & 7] != ((opcode & 1) != 0);
}

bool IsSimple(const MemoryOperand& operand) {
  if (operand.pattern != Pattern::kWhole || operand.mask != MaskKind::kNone ||
      operand.alignment != 0)
    return false;
  return !(operand.implicit && operand.index != kNoRegister);  // xlat
}

bool MayBeAtomic(const Instruction& instruction) {
  const MemoryOperand* const operand = OnlyOperand(instruction);
  return operand != nullptr && operand->reads != operand->writes && operand->size <= 16;
}

bool IsPlainUpdate(const Instruction& instruction) {
  const MemoryOperand* const operand = OnlyOperand(instruction);
  return operand != nullptr && operand->reads && operand->writes && !instruction.atomic;
}

bool MayComeOfAtomics(const Instruction& instruction) {
  return MayBeAtomic(instruction) || IsPlainUpdate(instruction);
}

}  // namespace trapline
