// How accesses are checked, and which flags live where they are.
#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "translator/region_builder.h"

namespace trapline {
namespace {

constexpr unsigned kFlagSearch = 16;  // instructions of called functions looked at for flags

}  // namespace

const AccessSite* RegionBuilder::AlreadyChecked(const MemoryOperand& operand) const {
  const auto found = std::find_if(checked_.begin(), checked_.end(), [&](const Checked& checked) {
    const MemoryOperand& other = checked.operand;
    return other.base == operand.base && other.index == operand.index &&
           other.scale == operand.scale && other.displacement == operand.displacement &&
           other.segment == operand.segment &&
           other.address_is_32_bits == operand.address_is_32_bits && other.size == operand.size &&
           (checked.write || !operand.writes);
  });
  return found != checked_.end() ? found->site : nullptr;
}

void RegionBuilder::ForgetChecks(const Item& item) {
  if (item.atomic || item.in.lock_prefix || item.in.branch != Branch::kNone) {
    checked_.clear();
    return;
  }
  std::erase_if(checked_, [&](const Checked& checked) {
    const auto changed = [&](std::uint8_t reg) { return (item.written & Bit(reg)) != 0; };
    return changed(checked.operand.base) || changed(checked.operand.index);
  });
}

void RegionBuilder::EmitSlowCall(const AccessSite* site, std::uint64_t stub) {
  ToSlowStack();
  out_.Bytes({0x68});  // push $imm32
  out_.Imm32(AddressOf(site));
  out_.CallTo(stub);
  FromSlowStack();
}

void RegionBuilder::EmitSimpleCheck(const Item& item, const MemoryOperand& operand) {
  MemoryOperand seen = operand;
  if (seen.base == kRip) seen.displacement += static_cast<std::int64_t>(item.next());
  if (item.only_reads) seen.writes = false;
  const bool filtered = options_.filter && !item.atomic;
  const AccessSite* const checked = filtered && !item.only_reads ? AlreadyChecked(seen) : nullptr;
  const AccessSite* const placed =
      checked != nullptr ? checked : cache_.NewSite(SiteOf(item, operand));
  if (options_.leaving_out) cache_.NoteSite(item.rip, placed);
  if (checked != nullptr) return;
  if (!filtered) {
    const std::uint8_t address = EmitAddressToKeep(item, operand);
    out_.StoreAbsolute(address, Slot(offsetof(CacheThread, access_address)));
    EmitSlowCall(placed, cache_.slow_stub_);
    return;
  }
  if (!IsConditionalMove(item.in)) checked_.push_back({seen, seen.writes, placed});
  if (options_.leaving_out) {
    EmitSectorCheck(item, operand, seen, placed);
  } else {
    EmitFilterCheck(item, operand, seen, placed);
  }
  if (state_.flags_in_rax && !LetsFlagsBeInRax(item)) Restore(kRax);
}

std::uint8_t RegionBuilder::EmitAddressToKeep(const Item& item, const MemoryOperand& operand) {
  if (IsBaseAlone(operand)) return operand.base;
  const std::uint8_t address = Scratch(item, 0);
  Save(address);
  EmitAddress(item, operand, address, Scratch(item, 1));
  return address;
}

void RegionBuilder::KeepFlags(const Item& item) {
  if (state_.flags_in_rax || !item.flags_live) return;
  Save(kRax);
  out_.Bytes({0x9f});              // lahf
  out_.Bytes({0x0f, 0x90, 0xc0});  // seto %al
  state_.flags_in_rax = true;
  Mark();
}

void RegionBuilder::CopyAddress(std::uint8_t to, std::uint8_t address) {
  if (state_.flags_in_rax && address == kRax) {
    out_.LoadAbsolute(to, Saved(kRax));
  } else {
    out_.Move(to, address);
  }
}

void RegionBuilder::EmitFilterCheck(const Item& item, const MemoryOperand& operand,
                                    const MemoryOperand& seen, const AccessSite* placed) {
  const std::uint8_t address = EmitAddressToKeep(item, operand);
  const std::uint8_t other = Scratch(item, 1);
  Save(other);
  KeepFlags(item);
  CopyAddress(other, address);
  EmitFilter(seen, address, other);
  const std::uint32_t jump = out_.JumpIf(kConditionNotEqual);
  out_of_line_.push_back(SlowAccess{&item, jump, state_, out_.here(), address, other, placed});
}

void RegionBuilder::EmitUnlessMoved(const Item& item, std::uint64_t back) {
  if (!IsConditionalMove(item.in) || !state_.flags_in_rax) return;
  out_.Bytes({0x3c, 0x81});  // cmp $-127, %al: overflow if al is 1
  out_.Bytes({0x9e});        // sahf
  out_.SetDisplacement(out_.JumpIf((item.in.opcode & 0xf) ^ 1), back);
}

void RegionBuilder::EmitOutOfLine(const SlowAccess& access) {
  out_.SetDisplacement(access.jump, out_.here());
  state_ = access.at_check;
  Mark();
  EmitUnlessMoved(*access.item, access.back);
  EmitArgument(access.address, access.other);
  EmitSlowCall(access.placed, cache_.StubFor(*access.placed));
  out_.JumpTo(access.back);
}

void RegionBuilder::EmitSectorCheck(const Item& item, const MemoryOperand& operand,
                                    const MemoryOperand& seen, const AccessSite* placed) {
  const bool base_alone = IsBaseAlone(operand);
  // The address cannot be computed again once the flags are in rax.
  const bool needs_rax = !base_alone && !state_.flags_in_rax && item.flags_live &&
                         (operand.base == kRax || operand.index == kRax);
  Telling telling{&item, operand, seen, placed};
  if (!needs_rax && (InGroup(operand) || EmitGroup(item, operand))) {
    KeepFlags(item);
    EmitTest(*placed, group_.rights);
    telling.computes = !base_alone;
    telling.address = base_alone ? operand.base : Scratch(item, 0);
    telling.cell = Scratch(item, base_alone ? 0 : 1);
    telling.by_area = options_.leaving_out->area_uses != 0;
    telling.jump = out_.JumpIf(kConditionEqual);
    return TellOutOfLine(telling);
  }
  const std::uint8_t sector = Scratch(item, 0);
  const std::uint8_t other = Scratch(item, 1);
  Save(sector);
  if (!base_alone) EmitAddress(item, operand, sector, other);
  KeepFlags(item);
  if (needs_rax) {
    Save(other);
    out_.Move(other, sector);
  }
  telling.computes = !base_alone && !needs_rax;
  telling.address = base_alone ? operand.base : needs_rax ? other : sector;
  telling.cell = telling.computes ? other : sector;
  if (base_alone) CopyAddress(sector, telling.address);
  EmitRights(sector);
  EmitTest(*placed, sector);
  telling.jump = out_.JumpIf(kConditionEqual);
  if (operand.size >= 16) {
    if (telling.computes) {
      EmitAddress(item, operand, sector, other);
    } else {
      CopyAddress(sector, telling.address);
    }
    out_.Lea(sector, sector, static_cast<std::int32_t>(operand.size - 1));
    EmitRights(sector);
    EmitTest(*placed, sector);
    telling.second_jump = out_.JumpIf(kConditionEqual);
  }
  TellOutOfLine(telling);
}

void RegionBuilder::TellOutOfLine(Telling telling) {
  telling.at_check = state_;
  telling.back = out_.here();
  out_of_line_.push_back(telling);
}

void RegionBuilder::EmitOutOfLine(const Telling& telling) {
  const std::uint8_t address = telling.address, cell = telling.cell;
  out_.SetDisplacement(telling.jump, out_.here());
  if (telling.second_jump != 0) out_.SetDisplacement(telling.second_jump, out_.here());
  state_ = telling.at_check;
  Mark();
  if (telling.computes) {
    Save(address);
    EmitAddress(*telling.item, telling.operand, address, cell);
  }
  Save(cell);
  CopyAddress(cell, address);
  if (telling.by_area) EmitSectorCheckAgain(telling);
  EmitFilter(telling.seen, address, cell);
  EmitArgument(address, cell);
  RestoreSinceCheck(telling);
  out_.SetDisplacement(out_.JumpIf(kConditionEqual), telling.back);
  EmitUnlessMoved(*telling.item, telling.back);
  EmitSlowCall(telling.placed, cache_.StubFor(*telling.placed));
  out_.JumpTo(telling.back);
}

void RegionBuilder::EmitSectorCheckAgain(const Telling& telling) {
  const std::uint8_t address = telling.address, cell = telling.cell;
  const auto test = [&] {
    EmitRights(cell);
    EmitTest(*telling.placed, cell);
    return out_.JumpIf(kConditionEqual);
  };
  const std::uint32_t jump = test();
  std::uint32_t second_jump = 0;
  if (telling.operand.size >= 16) {
    CopyAddress(cell, address);
    out_.Lea(cell, cell, static_cast<std::int32_t>(telling.operand.size - 1));
    second_jump = test();
  }
  const Mapping to_tell = state_;
  RestoreSinceCheck(telling);
  out_.JumpTo(telling.back);
  out_.SetDisplacement(jump, out_.here());
  if (second_jump != 0) out_.SetDisplacement(second_jump, out_.here());
  state_ = to_tell;
  Mark();
  CopyAddress(cell, address);
}

void RegionBuilder::RestoreSinceCheck(const Telling& telling) {
  for (const std::uint8_t reg : {telling.cell, telling.address}) {
    if ((telling.at_check.saved & Bit(reg)) == 0) Restore(reg);
  }
}

void RegionBuilder::EmitArgument(std::uint8_t address, std::uint8_t other) {
  const bool in_slot = state_.flags_in_rax && address == kRax;
  if (in_slot) CopyAddress(other, address);
  out_.StoreAbsolute(in_slot ? other : address, Slot(offsetof(CacheThread, access_address)));
}

bool RegionBuilder::InGroup(const MemoryOperand& operand) const {
  const std::int64_t low = group_.moved + operand.displacement;
  return group_.rights != kNoRegister && MayBeInGroup(operand) && operand.base == group_.base &&
         low >= group_.low && low + operand.size <= group_.high;
}

bool RegionBuilder::EmitGroup(const Item& item, const MemoryOperand& operand) {
  if (group_.rights != kNoRegister || !MayBeInGroup(operand)) return false;
  Group group = FindGroup(item, operand.base);
  if (group.members < kFewestInGroup) return false;
  const auto rights = std::find_if(scratch_.begin(), scratch_.end(), [&](std::uint8_t reg) {
    return reg != kept_ && (group.named & Bit(reg)) == 0;
  });
  if (rights == scratch_.end()) return false;
  group.rights = *rights;
  group_ = group;
  const std::uint8_t end = Scratch(item, 0);
  Save(group.rights);
  Save(end);
  out_.Lea(group.rights, group.base, static_cast<std::int32_t>(group.low));
  out_.Lea(end, group.base, static_cast<std::int32_t>(group.high - 1));
  KeepFlags(item);
  EmitAreaRights(group.rights);
  EmitAreaRights(end);
  out_.And32(group.rights, end);
  return true;
}

auto RegionBuilder::FindGroup(const Item& first, std::uint8_t base) const -> Group {
  const LeavingOut& leaving_out = *options_.leaving_out;
  const std::int64_t longest = std::int64_t{1}
                               << (leaving_out.area_uses != 0 ? leaving_out.area_bits
                                                              : leaving_out.sector_bits);
  Group group;
  group.base = base;
  std::int64_t moved = 0;
  std::uint16_t named = 0;
  std::uint64_t expected = first.rip;
  for (const Item* at = &first; at != end(); ++at) {
    const Item& item = *at;
    if (item.rip != expected || (&item != &first && item.leader)) break;
    if (!item.valid || item.report || item.atomic || item.in.lock_prefix || IsString(item.in))
      break;
    named |= item.named;
    // One for the group, two for checks of other accesses.
    if (std::popcount(kScratchSet & ~item.named) < 3) break;
    const auto operands = item.check ? item.in.memory() : std::span<const MemoryOperand>();
    if (!std::all_of(operands.begin(), operands.end(), IsSimple)) break;
    for (const MemoryOperand& operand : operands) {
      if (!MayBeInGroup(operand) || operand.base != base) continue;
      const std::int64_t from = moved + operand.displacement;
      const bool none = group.members == 0;
      const std::int64_t low = none ? from : std::min(group.low, from);
      const std::int64_t high =
          none ? from + operand.size : std::max(group.high, from + operand.size);
      if (high - low > longest) continue;
      group.low = low;
      group.high = high;
      ++group.members;
      group.last = item.rip;
      group.named = named;
    }
    const auto change = ChangeOf(item, base);
    if (item.in.branch != Branch::kNone || !change) break;
    moved += *change;
    expected = item.next();
  }
  return group;
}

std::int64_t RegionBuilder::SignedAt(const Item& item, unsigned offset, unsigned size) {
  std::int8_t byte = 0;
  std::int32_t word = 0;
  std::memcpy(&byte, item.bytes + offset, size == 1 ? 1 : 0);
  std::memcpy(&word, item.bytes + offset, size == 4 ? 4 : 0);
  // NOLINTNEXTLINE(bugprone-signed-char-misuse): the sign is extended, as the processor does
  return size == 1 ? std::int64_t{byte} : std::int64_t{word};
}

std::optional<std::int64_t> RegionBuilder::ChangeOf(const Item& item, std::uint8_t reg) {
  const Instruction& in = item.in;
  if ((item.written & Bit(reg)) == 0) return 0;
  if (reg != kRsp || in.encoding != Encoding::kLegacy || in.map != kMapOneByte) return {};
  const std::uint8_t opcode = in.opcode;
  const unsigned extension = in.modrm >> 3 & 7;
  if ((opcode >= 0x50 && opcode <= 0x57) || opcode == 0x68 || opcode == 0x6a) return -8;
  const bool pops_rsp = opcode == 0x5c && (in.rex & 1) == 0;
  if (opcode >= 0x58 && opcode <= 0x5f && !pops_rsp) return 8;
  if (!in.rex_w() || in.operand_size_prefix) return {};
  if ((opcode == 0x81 || opcode == 0x83) && !in.modrm_is_memory() && in.rm() == kRsp) {
    const std::int64_t by = SignedAt(item, in.immediate_offset, in.immediate_size);
    if (extension == 0) return by;
    if (extension == 5) return -by;
  }
  if (opcode == 0x8d && in.modrm_is_memory() && in.reg() == kRsp && in.base == kRsp &&
      in.index == kNoRegister && !in.address_size_prefix)
    return SignedAt(item, in.displacement_offset, in.displacement_size);
  return {};
}

void RegionBuilder::MoveGroup(const Item& item) {
  if (group_.rights == kNoRegister) return;
  const auto change = ChangeOf(item, group_.base);
  if (item.rip >= group_.last || !change) {
    group_ = {};  // rights is a scratch register as others are
  } else {
    group_.moved += *change;
  }
}

void RegionBuilder::EmitFilter(const MemoryOperand& seen, std::uint8_t address,
                               std::uint8_t other) {
  const auto low = static_cast<std::uint8_t>(other & 7);
  if (const unsigned shift = CacheThread::FilterShift(seen.size); shift != 0) {
    if (other >= 8) out_.Bytes({0x41});
    out_.Bytes({0xc1, static_cast<std::uint8_t>(0xe0 | low),
                static_cast<std::uint8_t>(shift)});  // shl $shift, other32
  }
  if (other >= 8) out_.Bytes({0x41});
  out_.Bytes({0x81, static_cast<std::uint8_t>(0xe0 | low)});  // and $mask, other32
  out_.Imm32(CacheThread::kFilterMask);
  out_.WithBase(0x8b, other, other,
                static_cast<std::int32_t>(Slot(offsetof(CacheThread, filter)) +
                                          (seen.writes ? sizeof(CacheThread::filter[0]) : 0)),
                false);
  if (state_.flags_in_rax && address == kRax) {
    out_.SubtractAbsolute(other, Saved(kRax));
  } else {
    out_.Bytes({static_cast<std::uint8_t>(0x48 | (address >= 8 ? 4 : 0) | (other >= 8 ? 1 : 0)),
                0x29, static_cast<std::uint8_t>(0xc0 | (address & 7) << 3 | low)});
  }
  out_.CompareAbsolute(
      other, Slot(offsetof(CacheThread, signature)) + 8u * CacheThread::SignatureIndex(seen.size));
}

void RegionBuilder::EmitRights(std::uint8_t reg) {
  EmitRights(reg, options_.leaving_out->uses, options_.leaving_out->sector_bits);
}

void RegionBuilder::EmitAreaRights(std::uint8_t reg) {
  const LeavingOut& leaving_out = *options_.leaving_out;
  if (leaving_out.area_uses == 0) return EmitRights(reg);
  EmitRights(reg, leaving_out.area_uses, leaving_out.area_bits);
}

void RegionBuilder::EmitRights(std::uint8_t reg, std::uint64_t uses, std::uint8_t bits) {
  const auto low = static_cast<std::uint8_t>(reg & 7);
  const bool high = reg >= 8;
  if (high) out_.Bytes({0x41});
  out_.Bytes({0xc1, static_cast<std::uint8_t>(0xe8 | low), bits});  // shr $bits, reg32
  for (const std::uint64_t table : {uses, options_.leaving_out->need_not_tell}) {
    if (high) out_.Bytes({0x45});
    out_.Bytes({0x0f, 0xb6, static_cast<std::uint8_t>(0x80 | low << 3 | low)});
    out_.Imm32(table);  // movzbl table(reg), reg32
  }
}

void RegionBuilder::EmitTest(const AccessSite& site, std::uint8_t rights) {
  out_.Bytes({static_cast<std::uint8_t>(rights >= 8 ? 0x44 : 0x40), 0x84,
              static_cast<std::uint8_t>(0x04 | (rights & 7) << 3), 0x25});
  out_.Imm32(AddressOf(&site.leaves_out));  // test rights8, leaves_out
}

AccessSite RegionBuilder::SiteOf(const Item& item, const MemoryOperand& operand) const {
  AccessSite site;
  site.rip = item.rip;
  site.size = operand.size;
  site.read = operand.reads;
  site.write = operand.writes && !item.only_reads;
  site.atomic = item.atomic;
  site.locked = item.in.atomic;
  site.exchange = item.in.atomic && IsExchange(item.in);
  if (options_.leaving_out) {
    site.cold =
        options_.cold_checks ? options_.cold_checks(item.rip) : options_.leaving_out->cold_checks;
  }
  return site;
}

void RegionBuilder::EmitAfterAtomic(const Item& item) {
  if (!options_.after_atomic || !item.atomic || !item.check) return;
  const auto operands = item.in.memory();
  if (operands.size() != 1 || !operands[0].reads) return;
  const bool simple = IsSimple(operands[0]);
  AccessSite site = simple ? SiteOf(item, operands[0]) : SiteByRegisters(item);
  site.done = true;
  // Its address is still in CacheThread::access_address, or has yet to be told: nobody may come in
  // between.
  state_.unrecoverable = true;
  Mark();
  if (!simple) RestoreAll();
  ToSlowStack();
  out_.Bytes({0x68});  // push $imm32
  out_.Imm32(AddressOf(Place(item, site)));
  out_.CallTo(simple ? cache_.slow_stub_ : cache_.full_slow_stub_);
  state_.unrecoverable = false;
  FromSlowStack();
}

void RegionBuilder::TakeFlagsFromRax(const Item& item) {
  if (!state_.flags_in_rax) return;
  if (item.valid && item.flag_use == FlagUse::kOverwrites) {
    state_.flags_in_rax = false;
    Mark();
  }
  Restore(kRax);
}

void RegionBuilder::EmitFlagsBack() {
  out_.Bytes({0x04, 0x7f});  // add $0x7f, %al: overflow if al is 1
  out_.Bytes({0x9e});        // sahf
  state_.flags_in_rax = false;
  Mark();
}

void RegionBuilder::FindLiveFlags() {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto item = items_.rbegin(); item != items_.rend(); ++item) {
      if (item->flags_live || !MayReadFlags(*item)) continue;
      item->flags_live = changed = true;
    }
  }
}

bool RegionBuilder::MayReadFlags(const Item& item) {
  if (!item.valid) return true;
  switch (item.in.branch) {
    case Branch::kJump:
    case Branch::kCall:
      return FlagsLiveAt(item.in.target);
    case Branch::kNone:
      return item.flag_use == FlagUse::kMayRead ||
             (item.flag_use == FlagUse::kKeeps && FlagsLiveAfter(item));
    default:
      return true;
  }
}

bool RegionBuilder::FlagsLiveAfter(const Item& item) {
  const Item* const following = &item + 1;
  const bool is_next = following != end() && following->rip == item.next();
  return is_next ? following->flags_live : FlagsLiveAt(item.next());
}

bool RegionBuilder::FlagsLiveAt(std::uint64_t rip) {
  if (const Item* const item = FindItem(rip)) return item->flags_live;
  const auto known = flags_live_outside_.find(rip);
  if (known != flags_live_outside_.end()) return known->second;
  return flags_live_outside_[rip] = FlagsLiveOutside(rip);
}

bool RegionBuilder::FlagsLiveOutside(std::uint64_t rip) {
  for (unsigned i = 0; i < kFlagSearch; ++i) {
    std::uint8_t bytes[kMaximumInstructionLength] = {};
    const std::size_t size = options_.read_code(rip, bytes, sizeof bytes);
    const auto in = Decode({bytes, size}, rip);
    if (!in) return true;
    CodeCache::AddRange(made_from_, rip, rip + in->length - 1);
    if (in->branch == Branch::kJump || in->branch == Branch::kCall) {
      rip = in->target;
      continue;
    }
    const FlagUse use = StatusFlagUse(*in);
    if (use != FlagUse::kKeeps) return use == FlagUse::kMayRead;
    rip += in->length;
  }
  return true;
}

void RegionBuilder::EmitTablePointerCheck(const Item& item) {
  const StoredValue stored = StoredBy(item.in, item.bytes);
  const MemoryOperand& operand = item.in.operands[0];
  const std::uint64_t vector = StackTop() - 16;
  RestoreAll();
  StoreOfSame same{};
  same.item = &item;
  same.address = Scratch(item, 0);
  same.word = Scratch(item, 1);
  Save(same.address);
  EmitAddress(item, operand, same.address, same.word);
  Save(same.word);
  if (stored.in_vector()) out_.StoreVector(stored.reg, vector);
  Save(kRcx);
  same.at_check = state_;
  std::uint32_t other = 0;
  for (unsigned i = 0; i < stored.words(); ++i) {
    if (stored.in_vector()) {
      const bool high = stored.source == StoredValue::Source::kVectorHigh || i != 0;
      out_.LoadAbsolute(same.word, vector + (high ? 8 : 0));
    } else if (stored.source == StoredValue::Source::kImmediate) {
      out_.MoveImm(same.word, stored.immediate);
    } else if (stored.reg != kRcx) {
      out_.Move(same.word, stored.reg);
    } else {
      out_.LoadAbsolute(same.word, Saved(kRcx));
    }
    out_.WithBase(0x8b, kRcx, same.address, static_cast<std::int32_t>(8 * i), true);
    out_.Not(kRcx);
    out_.LeaSum(kRcx, same.word, kRcx, 1);  // the difference
    const bool last = i + 1 == stored.words();
    // jrcxz over a jump to where they are not the same, which is short if that is the next
    out_.Bytes({0xe3, static_cast<std::uint8_t>(last ? 2 : 5)});
    if (last) {
      out_.Bytes({0xeb, 5});
      same.jump = out_.Jump();
    } else {
      other = out_.Jump();
    }
  }
  same.other = out_.here();
  if (other != 0) out_.SetDisplacement(other, same.other);
  RestoreAll();
  EmitSimpleCheck(item, operand);
  // It need not have been checked as a write.
  for (Checked& checked : checked_) checked.write &= checked.site->rip != item.rip;
  RestoreAll();
  same.back = out_.here();
  out_of_line_.push_back(same);
}

void RegionBuilder::EmitOutOfLine(const StoreOfSame& store) {
  const Item& item = *store.item;
  out_.SetDisplacement(store.jump, out_.here());
  state_ = store.at_check;
  Mark();
  for (unsigned i = 0; i < StoredBy(item.in, item.bytes).words(); ++i) {
    out_.WithBase(0x8b, store.word, store.address, static_cast<std::int32_t>(8 * i), true);
    out_.Not(store.word);
    std::vector<std::uint32_t> found;
    for (const std::uint64_t table : tables_.found()) {
      out_.MoveImm(kRcx, table);
      out_.LeaSum(kRcx, kRcx, store.word, 1);
      out_.Bytes({0xe3, 2, 0xeb, 5});  // jrcxz over a short jump to the next
      found.push_back(out_.Jump());
    }
    out_.JumpTo(store.other);
    for (const std::uint32_t jump : found) out_.SetDisplacement(jump, out_.here());
  }
  RestoreAll();
  checked_.clear();
  MemoryOperand operand = item.in.operands[0];
  operand.reads = true;
  operand.writes = false;
  EmitSimpleCheck(item, operand);
  RestoreAll();
  out_.JumpTo(store.back);
}

void RegionBuilder::EmitChecks(const Item& item) {
  if (!item.check) return;
  if (item.may_store_tables) return EmitTablePointerCheck(item);
  const auto operands = item.in.memory();
  if (std::all_of(operands.begin(), operands.end(), IsSimple)) {
    for (const MemoryOperand& operand : operands) EmitSimpleCheck(item, operand);
    return;
  }
  RestoreAll();
  AccessSite site = SiteByRegisters(item);
  if (IsString(item.in) && item.in.repeat == Repeat::kRep) {
    site.repeated = static_cast<std::uint8_t>(std::bit_width(operands[0].size));
    for (const MemoryOperand& operand : operands) {
      site.read |= operand.reads;
      site.write |= operand.writes;
    }
  }
  EmitSlowCall(Place(item, site),
               NeedsVectors(item.in) ? cache_.vector_slow_stub_ : cache_.full_slow_stub_);
}

const AccessSite* RegionBuilder::Place(const Item& item, const AccessSite& site) {
  if (!IsToldByElements(item)) return cache_.NewSite(site);
  ElementSites sites = ElementSitesOf(item, site);
  sites.element.done = site.done;
  return &cache_.NewSites(sites)->all;
}

bool RegionBuilder::IsToldByElements(const Item& item) {
  const auto operands = item.in.memory();
  return operands.size() == 1 && HasElements(operands[0]) &&
         (!item.atomic || operands[0].pattern == Pattern::kBitString);
}

AccessSite RegionBuilder::SiteByRegisters(const Item& item) {
  AccessSite site;
  site.rip = item.rip;
  site.atomic = item.atomic;
  site.locked = item.in.atomic;
  site.exchange = item.in.atomic && IsExchange(item.in);
  cache_.site_instructions_.push_back(std::make_unique<Instruction>(item.in));
  site.instruction = cache_.site_instructions_.back().get();
  return site;
}

ElementSites RegionBuilder::ElementSitesOf(const Item& item, const AccessSite& all) const {
  const MemoryOperand& operand = item.in.operands[0];
  return ElementSites(operand, LayoutOfVectors(), item.next(), all, SiteOf(item, operand));
}

void RegionBuilder::EmitReport(const Item& item) {
  RestoreAll();
  AccessSite site;
  site.rip = item.rip;
  site.report = true;
  EmitSlowCall(cache_.NewSite(site), cache_.full_slow_stub_);
}

}  // namespace trapline
