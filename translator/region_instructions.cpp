// How the instructions themselves are copied.
#include <algorithm>
#include <cstring>
#include <span>

#include "translator/region_builder.h"

namespace trapline {
namespace {

bool IsRipRelative(const Instruction& in) {
  return in.modrm_is_memory() && (in.modrm & 0xc7) == 0x05;
}

}  // namespace

bool RegionBuilder::NeedsRewrite(const Item& item) const {
  if (IsRipRelative(item.in)) return true;
  if (!item.in.modrm_is_memory() || item.in.operand_count == 0) return false;
  return item.in.segment == Segment::kGs || (item.in.segment == Segment::kFs && item.instrument);
}

MemoryOperand RegionBuilder::ModrmOperand(const Item& item) const {
  for (const MemoryOperand& operand : item.in.memory()) {
    if (!operand.implicit) return operand;
  }
  MemoryOperand operand;  // lea, nop, prefetch with a rip-relative address
  operand.base = kRip;
  operand.address_is_32_bits = item.in.address_size_prefix;
  std::int32_t displacement = 0;
  std::memcpy(&displacement, item.bytes + item.in.displacement_offset, 4);
  operand.displacement = displacement;
  return operand;
}

void RegionBuilder::EmitOriginal(const Item& item, bool gs, bool without_repeat) {
  if (gs) out_.Bytes({0x65});
  const unsigned prefixes = item.in.opcode_offset;
  for (unsigned i = 0; i < prefixes; ++i) {
    const std::uint8_t byte = item.bytes[i];
    const bool segment = byte == 0x64 || byte == 0x65 || byte == 0x26 || byte == 0x2e ||
                         byte == 0x36 || byte == 0x3e;
    if (segment && (gs || byte != 0x64)) continue;
    if (without_repeat && (byte == 0xf2 || byte == 0xf3)) continue;
    // A REX that another prefix follows is void, and must not come to stand before the opcode.
    if ((byte & 0xf0) == 0x40 && i + 1 != prefixes) continue;
    out_.Bytes({byte});
  }
  out_.Bytes(std::span(item.bytes + prefixes, item.in.length - prefixes));
}

void RegionBuilder::EmitWithBase(const Item& item, std::uint8_t base, bool gs) {
  const Instruction& in = item.in;
  if (gs) out_.Bytes({0x65});
  for (unsigned i = 0; i < in.opcode_offset; ++i) {
    const std::uint8_t byte = item.bytes[i];
    switch (byte) {
      case 0x64:
      case 0x65:
      case 0x26:
      case 0x2e:
      case 0x36:
      case 0x3e:
      case 0x67:
        break;
      default:
        if ((byte & 0xf0) != 0x40) out_.Bytes({byte});
    }
  }
  const bool extended = base >= 8;
  const std::uint8_t* at = item.bytes + in.opcode_offset;
  const std::uint8_t* const modrm = item.bytes + in.modrm_offset;
  switch (in.encoding) {
    case Encoding::kLegacy:
    case Encoding::k3dNow:
      if (in.rex != 0 || extended) {
        out_.Bytes({static_cast<std::uint8_t>(0x40 | (in.rex & 0x0c) | (extended ? 1 : 0))});
      }
      break;
    case Encoding::kVex:
    case Encoding::kXop: {
      const bool two_bytes = at[0] == 0xc5;
      const std::uint8_t r = at[1] & 0x80;
      const auto map_byte = static_cast<std::uint8_t>(r | 0x40 | (extended ? 0 : 0x20) | in.map);
      const std::uint8_t tail = two_bytes ? at[1] & 0x7f : at[2];
      out_.Bytes({static_cast<std::uint8_t>(two_bytes ? 0xc4 : at[0]), map_byte, tail});
      at += two_bytes ? 2 : 3;
      break;
    }
    case Encoding::kEvex:
      out_.Bytes({at[0], static_cast<std::uint8_t>((at[1] & 0x9f) | 0x40 | (extended ? 0 : 0x20)),
                  at[2], at[3]});
      at += 4;
      break;
  }
  while (at < modrm) out_.Bytes({*at++});
  if ((base & 7) == 5) {
    out_.Bytes({static_cast<std::uint8_t>(0x40 | (in.modrm & 0x38) | (base & 7)), 0});
  } else {
    out_.Bytes({static_cast<std::uint8_t>((in.modrm & 0x38) | (base & 7))});
  }
  const unsigned rest =
      in.encoding == Encoding::k3dNow || in.immediate_size != 0 ? in.immediate_offset : in.length;
  out_.Bytes(std::span(item.bytes + rest, item.in.length - rest));
}

void RegionBuilder::EmitItem(const Item& item) {
  const Instruction& in = item.in;
  const bool gs = item.instrument;
  if (in.branch != Branch::kNone) return EmitBranchItem(item);
  if (in.encoding == Encoding::kLegacy && EmitStackItem(item)) return;
  if (IsString(in) && gs) return EmitStringItem(item);
  EmitChecks(item);
  if (!NeedsRewrite(item)) {
    RestoreLow(state_.flags_in_rax ? kRax : kNoRegister);
    EmitOriginal(item, gs && in.operand_count != 0);
    state_.rip = item.next();
    return EmitAfterAtomic(item);
  }
  // lea of a rip-relative address
  if (IsOneByte(in, 0x8d) && in.rex_w() && !in.address_size_prefix) {
    return out_.MoveImm(in.reg(),
                        item.next() + static_cast<std::uint64_t>(ModrmOperand(item).displacement));
  }
  const std::uint8_t base = Scratch(item, 0);
  Save(base);
  EmitAddress(item, ModrmOperand(item), base, Scratch(item, 1));
  RestoreLow(base);
  EmitWithBase(item, base, gs);
  state_.rip = item.next();
  Mark();
  EmitAfterAtomic(item);
  RestoreLow();
}

void RegionBuilder::EmitBranchItem(const Item& item) {
  const Instruction& in = item.in;
  if (in.branch == Branch::kJump || in.branch == Branch::kConditional) RestoreAll(kept_);
  if (in.branch == Branch::kSyscall) RestoreAll();
  switch (in.branch) {
    case Branch::kJump:
      return EmitBranch(in.target);
    case Branch::kConditional:
      return EmitConditional(item);
    case Branch::kSyscall:
      return EmitSystemCall(item);
    default:
      break;
  }
  EmitChecks(item);
  RestoreAll();
  const bool gs = item.instrument;
  switch (in.branch) {
    case Branch::kCall:
      EmitReturnAddress(item, gs);
      state_.rip = in.target;
      Mark();
      return EmitBranch(in.target);
    case Branch::kIndirectCall:
    case Branch::kIndirectJump:
      EmitTarget(item);
      if (in.branch == Branch::kIndirectCall) EmitReturnAddress(item, gs);
      state_.rip_is_in_rax = true;
      Mark();
      return EmitLookup();
    default: {  // return
      Save(kRax);
      out_.WithBase(0x8b, kRax, kRsp, 0, gs);
      std::uint16_t extra = 0;
      if (in.immediate_size == 2) std::memcpy(&extra, item.bytes + in.immediate_offset, 2);
      EmitShadowPop();
      out_.Lea(kRsp, kRsp, 8 + extra);
      state_.rip_is_in_rax = true;
      Mark();
      return EmitLookup();
    }
  }
}

void RegionBuilder::EmitSystemCall(const Item& item) {
  constexpr std::uint8_t kSysenter = 0x34;
  if (options_.system_call_entry == 0 || item.in.opcode == kSysenter) {
    EmitOriginal(item, false);
  } else {
    // lea 5(%rip), %rcx: behind the jump. What rcx held is lost, as it is by SYSCALL.
    out_.Bytes({0x48, 0x8d, 0x0d, 5, 0, 0, 0});
    state_.rcx_is_cache_address = true;
    Mark();
    out_.JumpTo(options_.system_call_entry);
  }
  state_.rip = item.next();
  state_.rcx_is_cache_address = true;
  Mark();
  out_.MoveImm(kRcx, item.next());
  state_.rcx_is_cache_address = false;
  Mark();
}

void RegionBuilder::EmitTarget(const Item& item) {
  const Instruction& in = item.in;
  Save(kRax);
  if (!in.modrm_is_memory()) {
    if (in.rm() != kRax) out_.Move(kRax, in.rm());
    return;
  }
  const MemoryOperand operand = ModrmOperand(item);
  if (!NeedsRewrite(item)) {
    // An uninstrumented fs: operand keeps its segment.
    if (operand.segment == Segment::kFs) out_.Bytes({0x64});
    out_.WithOperand(0x8b, kRax, operand, item.instrument);
    return;
  }
  EmitAddress(item, operand, kRax, kRcx);
  Restore(kRcx);
  out_.WithBase(0x8b, kRax, kRax, 0, item.instrument);
}

void RegionBuilder::EmitReturnAddress(const Item& item, bool gs) {
  const std::uint64_t address = item.next();
  if (static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(address)}) == address) {
    if (gs) out_.Bytes({0x65});
    out_.Bytes({0x48, 0xc7, 0x44, 0x24, 0xf8});  // movq $imm32, -8(%rsp)
    out_.Imm32(address);
  } else {
    // In one store: the return's load of two halves would have to wait for both to reach the
    // cache (8 ns).
    const std::uint8_t scratch = Scratch(item, 0);
    Save(scratch);
    out_.MoveImm(scratch, address);
    out_.WithBase(0x89, scratch, kRsp, -8, gs);
    Restore(scratch);
  }
  EmitShadowPush(item);
  out_.Lea(kRsp, kRsp, -8);
}

void RegionBuilder::EmitShadowPush(const Item& item) {
  if (!options_.shadow_stack) return;
  const std::uint8_t frame = Scratch(item, 0), value = Scratch(item, 1);
  Save(frame);
  Save(value);
  out_.LoadAbsolute(frame, Slot(offsetof(CacheThread, next_frame)));
  out_.MoveImm(value, item.next());
  out_.WithBase(0x89, value, frame, offsetof(ShadowFrame, return_address), false);
  out_.Lea(value, kRsp, -8);
  out_.Not(value);
  out_.WithBase(0x89, value, frame, offsetof(ShadowFrame, inverse_slot), false);
  out_.Lea16(frame, frame, sizeof(ShadowFrame));
  out_.StoreAbsolute(frame, Slot(offsetof(CacheThread, next_frame)));
  Restore(frame);
  Restore(value);
}

void RegionBuilder::EmitShadowPop() {
  if (!options_.shadow_stack) return;
  Save(kRcx);
  Save(kRdx);
  out_.LoadAbsolute(kRdx, Slot(offsetof(CacheThread, next_frame)));
  out_.Lea16(kRdx, kRdx, -static_cast<int>(sizeof(ShadowFrame)));
  out_.WithBase(0x8b, kRcx, kRdx, offsetof(ShadowFrame, inverse_slot), false);
  out_.LeaSum(kRcx, kRsp, kRcx, 1);
  out_.Bytes({0xe3, 2, 0xeb, 0});  // jrcxz over the jump to the end
  const std::uint32_t skip = out_.offset();
  out_.StoreAbsolute(kRdx, Slot(offsetof(CacheThread, next_frame)));
  out_.SetByte(skip - 1, static_cast<std::uint8_t>(out_.offset() - skip));
}

void RegionBuilder::EmitConditional(const Item& item) {
  const Instruction& in = item.in;
  if (in.map == kMap0F || (in.opcode & 0xf0) == 0x70)
    return EmitBranchIf(in.opcode & 15, in.target);
  // loop, jrcxz: only short forms.
  RestoreAll();
  if (in.address_size_prefix) out_.Bytes({0x67});
  out_.Bytes({in.opcode, 2});  // taken: over the next jump
  // loop has counted: from here on it is done.
  state_.rip = item.next();
  Mark();
  out_.Bytes({0xeb, 0});
  const std::uint32_t over = out_.offset();
  state_.rip = in.target;
  Mark();
  EmitBranch(in.target);
  out_.SetByte(over - 1, static_cast<std::uint8_t>(out_.offset() - over));
}

bool RegionBuilder::EmitStackItem(const Item& item) {
  const Instruction& in = item.in;
  if (!item.instrument || in.map != kMapOneByte) return false;
  const std::uint8_t opcode = in.opcode;
  const std::uint8_t reg = in.opcode_reg();
  const bool push_memory = opcode == 0xff && (in.modrm >> 3 & 7) == 6;
  const bool known = (opcode >= 0x50 && opcode <= 0x5f) || opcode == 0x68 || opcode == 0x6a ||
                     opcode == 0x8f || opcode == 0x9c || opcode == 0x9d || opcode == 0xc9 ||
                     push_memory;
  if (!known) return false;
  EmitChecks(item);
  const std::uint8_t scratch = Scratch(item, 0);
  const std::uint8_t other = Scratch(item, 1);
  if (opcode >= 0x50 && opcode <= 0x57) {
    out_.WithBase(0x89, reg, kRsp, -8, true);
    out_.Lea(kRsp, kRsp, -8);
  } else if (opcode >= 0x58 && opcode <= 0x5f) {
    out_.WithBase(0x8b, reg, kRsp, 0, true);
    if (reg != kRsp) Popped(item);
  } else if (opcode == 0x68 || opcode == 0x6a) {
    const std::int64_t value = SignedAt(item, in.immediate_offset, opcode == 0x68 ? 4 : 1);
    out_.Bytes({0x65, 0x48, 0xc7, 0x44, 0x24, 0xf8});
    out_.Imm32(static_cast<std::uint64_t>(value));
    out_.Lea(kRsp, kRsp, -8);
  } else if (opcode == 0x8f && !in.modrm_is_memory()) {
    out_.WithBase(0x8b, in.rm(), kRsp, 0, true);
    if (in.rm() != kRsp) Popped(item);
  } else if (opcode == 0xff && !in.modrm_is_memory()) {
    out_.WithBase(0x89, in.rm(), kRsp, -8, true);
    out_.Lea(kRsp, kRsp, -8);
  } else if (opcode == 0x8f) {
    Save(scratch);
    Save(other);
    EmitPopToMemory(item, scratch, other);
  } else if (opcode == 0xff) {
    Save(scratch);
    const MemoryOperand operand = ModrmOperand(item);
    if (NeedsRewrite(item)) {
      EmitAddress(item, operand, scratch, other);
      out_.WithBase(0x8b, scratch, scratch, 0, true);
    } else {
      out_.WithOperand(0x8b, scratch, operand, true);
    }
    out_.WithBase(0x89, scratch, kRsp, -8, true);
    out_.Lea(kRsp, kRsp, -8);
  } else if (opcode == 0x9c) {
    Save(scratch);
    ToSlowStack();
    out_.Bytes({0x9c});
    out_.Pop(scratch);
    FromSlowStack();
    out_.WithBase(0x89, scratch, kRsp, -8, true);
    out_.Lea(kRsp, kRsp, -8);
  } else if (opcode == 0x9d) {
    Save(scratch);
    out_.WithBase(0x8b, scratch, kRsp, 0, true);
    ToSlowStack();
    // Without a guest, tests step through the copy.
    if (options_.memory) EmitStepIfTrapFlag(item, scratch);
    out_.Push(scratch);
    out_.Bytes({0x9d});
    state_.unrecoverable = false;
    state_.rip = item.next();
    state_.rsp_behind = 8;
    Mark();
    FromSlowStack();
    Popped(item);
  } else {  // leave
    Save(scratch);
    out_.WithBase(0x8b, scratch, kRbp, 0, true);
    out_.Lea(kRsp, kRbp, 8);
    state_.rip = item.next();
    state_.rbp_in = scratch;
    Mark();
    out_.Move(kRbp, scratch);
    state_.rbp_in = kRbp;
  }
  state_.rip = item.next();
  Mark();
  return true;
}

void RegionBuilder::EmitStepIfTrapFlag(const Item& item, std::uint8_t flags) {
  const Mapping before = state_;
  out_.Bytes({0x9c});
  state_.unrecoverable = true;
  Mark();
  if (flags >= 8) out_.Bytes({0x41});
  out_.Bytes({0xf7, static_cast<std::uint8_t>(0xc0 | (flags & 7))});  // test $0x100, flags
  out_.Imm32(0x100);
  const std::uint32_t to_step = out_.JumpIf(kConditionNotEqual);
  out_of_line_.push_back(TrapFlagStep{to_step, before, item.rip});
}

void RegionBuilder::EmitOutOfLine(const TrapFlagStep& step) {
  out_.SetDisplacement(step.jump, out_.here());
  state_ = step.before;
  state_.unrecoverable = true;
  Mark();
  out_.Bytes({0x9d});
  state_.unrecoverable = false;
  FromSlowStack();
  RestoreAll();
  EmitExit(ExitKind::kStep, step.rip);
}

void RegionBuilder::EmitPopToMemory(const Item& item, std::uint8_t value, std::uint8_t address) {
  const MemoryOperand operand = ModrmOperand(item);
  if (NeedsRewrite(item)) {
    EmitAddress(item, operand, address, value);
    out_.WithBase(0x8b, value, kRsp, 0, true);
    out_.WithBase(0x89, value, address, 0, true);
  } else {
    out_.WithBase(0x8b, value, kRsp, 0, true);
    out_.WithOperand(0x89, value, operand, true);
  }
  out_.Lea(kRsp, kRsp, 8);
}

void RegionBuilder::Popped(const Item& item) {
  state_.rip = item.next();
  state_.rsp_behind = 8;
  Mark();
  out_.Lea(kRsp, kRsp, 8);
  state_.rsp_behind = 0;
  Mark();
}

void RegionBuilder::EmitElementChecks(const Item& item) {
  if (!item.check) return;
  for (MemoryOperand element : item.in.memory()) {
    element.pattern = Pattern::kWhole;
    EmitSimpleCheck(item, element);
  }
  RestoreAll();
}

void RegionBuilder::EmitStringItem(const Item& item) {
  const Instruction& in = item.in;
  const auto operands = in.memory();
  const bool uses_rdi = std::any_of(operands.begin(), operands.end(),
                                    [](const MemoryOperand& o) { return o.base == kRdi; });
  const bool uses_rsi = std::any_of(operands.begin(), operands.end(),
                                    [](const MemoryOperand& o) { return o.base == kRsi; });
  const bool loop = in.repeat == Repeat::kRepe || in.repeat == Repeat::kRepne;
  RestoreAll();
  const std::uint64_t start = out_.here();
  std::uint32_t to_end = 0;
  if (loop) {  // jrcxz over a short jump to a long one
    out_.Bytes({0xe3, 2, 0xeb, 5});
    to_end = out_.Jump();
    checked_.clear();  // each round has other addresses
  }
  if (in.repeat == Repeat::kRep) {
    EmitChecks(item);
  } else {
    EmitElementChecks(item);
  }
  constexpr std::uint8_t kScratch = 8;
  if (uses_rdi && options_.mirror_offset != 0) MoveRdi(kScratch, options_.mirror_offset, true);
  EmitOriginal(item, uses_rsi, loop);
  if (loop) {
    state_.element_done = true;
    state_.length = in.length;
    state_.stops_when_equal = in.repeat == Repeat::kRepne;
    Mark();
    out_.Lea(kRcx, kRcx, -1);
    state_.element_done = false;
    state_.compared = true;
    Mark();
  } else {
    state_.rip = in.repeat == Repeat::kNone ? item.next() : item.rip;
    Mark();
  }
  if (uses_rdi && options_.mirror_offset != 0)
    MoveRdi(kScratch, ~options_.mirror_offset + 1, false);
  RestoreAll();
  if (!loop) return;
  const std::uint32_t done =
      out_.JumpIf(in.repeat == Repeat::kRepe ? kConditionNotEqual : kConditionEqual);
  out_.JumpTo(start);
  out_.SetDisplacement(done, out_.here());
  out_.SetDisplacement(to_end, out_.here());
  state_ = {};
  state_.rip = item.next();
  Mark();
}

void RegionBuilder::MoveRdi(std::uint8_t scratch, std::uint64_t by, bool to_mirror) {
  Save(scratch);
  out_.MoveImm(scratch, by);
  out_.LeaSum(kRdi, kRdi, scratch);
  state_.rdi_is_mirror = to_mirror;
  Mark();
}

}  // namespace trapline
