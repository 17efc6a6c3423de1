// Which code makes up a region, its blocks and what leads out of them.
#include "translator/region_builder.h"

#include <algorithm>
#include <deque>
#include <iterator>

namespace trapline {
namespace {

constexpr unsigned kReportLength = 2;  // bytes of TranslatorOptions::report_at

// Instructions that the cache does not run: the driver steps them.
bool MustStep(const Instruction& in) {
  if (in.branch == Branch::kOther) return true;
  const bool legacy = in.encoding == Encoding::kLegacy;
  if (in.branch == Branch::kConditional && IsOneByte(in, 0xc7)) return true;  // xbegin
  if (legacy && in.map == kMapOneByte) {
    switch (in.opcode) {
      case 0x6c:  // ports
      case 0x6d:
      case 0x6e:
      case 0x6f:
      case 0xe4:
      case 0xe5:
      case 0xe6:
      case 0xe7:
      case 0xec:
      case 0xed:
      case 0xee:
      case 0xef:
      case 0x8c:  // segment registers
      case 0x8e:
      case 0xc8:  // enter
        return true;
      default:
        break;
    }
  }
  if (legacy && in.map == kMap0F) {
    switch (in.opcode) {
      case 0x34:  // sysenter
      case 0xa0:  // fs, gs
      case 0xa1:
      case 0xa8:
      case 0xa9:
      case 0xb2:
      case 0xb4:
      case 0xb5:
        return true;
      case 0xae: {  // rdgsbase, wrfsbase, wrgsbase; rdfsbase is harmless
        const unsigned reg = in.modrm >> 3 & 7;
        if (in.mandatory == 0xf3 && !in.modrm_is_memory() && reg >= 1 && reg <= 3) return true;
        break;
      }
      default:
        break;
    }
  }
  if (in.map == kMap0F38 && legacy && in.opcode == 0xf8)
    return true;  // movdir64b: its destination has no segment
  if (IsString(in) && (in.segment != Segment::kNone || in.address_size_prefix)) return true;
  for (const MemoryOperand& operand : in.memory()) {
    const bool stack = operand.implicit && (operand.base == kRsp || operand.base == kRbp);
    if (stack && operand.size != 8) return true;
    const bool has_segment = operand.segment != Segment::kNone;
    if (has_segment && (operand.implicit || !in.has_modrm)) return true;
    if (operand.pattern == Pattern::kGather && operand.segment != Segment::kNone) return true;
  }
  return false;
}

}  // namespace

bool RegionBuilder::Discover(std::uint64_t rip) {
  first_ = rip;
  std::deque<std::uint64_t> work = {rip};
  while (!work.empty() && items_.size() < options_.max_instructions) {
    std::uint64_t at = work.front();
    work.pop_front();
    while (items_.size() < options_.max_instructions && !items_.contains(at) &&
           !cache_.entries_.contains(at)) {
      Item& item = items_[at];
      item.rip = at;
      const std::size_t size = options_.read_code(at, item.bytes, sizeof item.bytes);
      const auto decoded = Decode({item.bytes, size}, at);
      // What else it touches only its own faults tell, outside.
      if (!decoded || !decoded->effects_known) {
        items_.erase(at);
        break;
      }
      item.report = at == options_.report_at && decoded->length == kReportLength;
      if (MustStep(*decoded) && !item.report) break;
      item.valid = true;
      item.in = *decoded;
      const Instrument instrument = item.in.operand_count == 0 ? Instrument::kNone
                                    : options_.instrument      ? options_.instrument(at)
                                                               : Instrument::kCheck;
      // An instrumented one leaves the cache when it sets the trap flag.
      const bool pops_flags = item.in.map == kMapOneByte && item.in.opcode == 0x9d;
      item.instrument = instrument != Instrument::kNone || pops_flags;
      item.check = instrument == Instrument::kCheck;
      item.only_reads = OnlyReadsMemory(item.in);
      item.atomic =
          (item.in.atomic && !item.only_reads) ||
          (item.check && options_.is_atomic && MayBeAtomic(item.in) && options_.is_atomic(at));
      const Branch branch = item.in.branch;
      if (branch == Branch::kConditional || branch == Branch::kJump) work.push_back(item.in.target);
      if (branch == Branch::kJump || branch == Branch::kIndirectJump || branch == Branch::kReturn)
        break;
      at = item.next();
    }
  }
  return !items_.empty();
}

void RegionBuilder::Emit() {
  FindLeaders();
  FindLoops();
  if (options_.filter) FindLiveFlags();
  for (auto at = items_.begin(); at != items_.end(); ++at) {
    const Item& item = at->second;
    if (leaders_.contains(item.rip)) {
      checked_.clear();
      ChooseScratch(at);
      BeginBlock(item.rip);
    }
    // Only where every register is in its place may others come in.
    if (state_.saved == 0) labels_[item.rip] = out_.here();
    state_.rip = item.rip;
    Mark();
    if (!item.valid) {
      RestoreAll();
      EmitExit(ExitKind::kStep, item.rip);
      ++stepped_;
      state_ = {};
      continue;
    }
    if (!LetsFlagsBeInRax(item)) TakeFlagsFromRax(item);
    RestoreNamed(item);
    at_item_ = state_.saved;
    if (item.report) {
      EmitReport(item);
    } else {
      EmitItem(item);
    }
    ForgetChecks(item);
    MoveGroup(item);
    const Branch branch = item.in.branch;
    if (branch == Branch::kJump || branch == Branch::kIndirectJump || branch == Branch::kReturn ||
        branch == Branch::kCall || branch == Branch::kIndirectCall) {
      state_ = {};
      continue;
    }
    state_.rip = item.next();
    Mark();
    const auto following = std::next(at);
    if (following == items_.end() || following->first != item.next()) {
      RestoreAll();
      EmitBranch(item.next());
      state_ = {};
    }
  }
  group_ = {};
  for (std::size_t i = 0; i < cold_.size(); ++i) cold_[i]();
  for (PendingLink& link : links_) {
    link.stub = out_.here();
    Begin(link.target, link.kept);
    const std::uint64_t number = cache_.links_.size() + (&link - links_.data());
    EmitExit(ExitKind::kLink, number);
  }
}

void RegionBuilder::Publish() {
  for (const PendingLink& pending : links_) {
    CodeCache::Link link;
    link.displacement = region_->begin + pending.displacement;
    link.stub = pending.stub;
    link.target = pending.target;
    link.region = region_.get();
    link.kept = pending.kept != kNoRegister;
    region_->links.push_back(cache_.links_.size());
    cache_.links_.push_back(link);
    const auto& labels = link.kept ? kept_labels_ : labels_;
    const auto label = labels.find(link.target);
    const std::uint64_t target = label != labels.end() ? label->second : cache_.Find(link.target);
    cache_.StoreDisplacement(link.displacement, target != 0 ? target : link.stub);
    cache_.links_.back().linked = target != 0;
  }
  for (const auto& [rip, address] : labels_) cache_.entries_.emplace(rip, address);
  for (const auto& [rip, item] : items_) {
    region_->instructions.emplace_back(rip, rip + std::max<std::uint64_t>(item.in.length, 1) - 1);
    ++cache_.statistics_.instructions;
    cache_.statistics_.instrumented += item.instrument;
  }
  region_->instructions.insert(region_->instructions.end(), outside_.begin(), outside_.end());
  ++cache_.statistics_.regions;
  const auto blocks = static_cast<std::uint64_t>(std::count_if(
      leaders_.begin(), leaders_.end(), [&](std::uint64_t rip) { return items_.contains(rip); }));
  cache_.statistics_.blocks += blocks;
  cache_.blocks_ += blocks;
  cache_.statistics_.links += links_.size();
  cache_.statistics_.stepped += stepped_;
  region_->mappings.shrink_to_fit();
  region_->instructions.shrink_to_fit();
  region_->end = region_->begin + out_.bytes().size();
  const std::uint64_t begin = region_->begin;
  cache_.regions_[begin] = std::move(region_);
}

void RegionBuilder::Begin(std::uint64_t rip, std::uint8_t kept) {
  state_ = {};
  state_.rip = rip;
  state_.saved = static_cast<std::uint16_t>(Bit(kept));
  Mark();
  if (kept != kNoRegister) Restore(kept);
}

void RegionBuilder::Mark() {
  state_.offset = out_.offset();
  if (!region_->mappings.empty() && region_->mappings.back().offset == state_.offset)
    region_->mappings.pop_back();
  region_->mappings.push_back(state_);
}

void RegionBuilder::Save(std::uint8_t reg) {
  if ((state_.saved & Bit(reg)) != 0) return;
  out_.StoreAbsolute(reg, Saved(reg));
  state_.saved = static_cast<std::uint16_t>(state_.saved | Bit(reg));
  Mark();
}

void RegionBuilder::Restore(std::uint8_t reg) {
  if ((state_.saved & Bit(reg)) == 0) return;
  if (reg == kRax && state_.flags_in_rax) EmitFlagsBack();
  if (reg == group_.rights) group_ = {};
  out_.LoadAbsolute(reg, Saved(reg));
  state_.saved = static_cast<std::uint16_t>(state_.saved & ~Bit(reg));
  Mark();
}

void RegionBuilder::RestoreAll(std::uint8_t except) {
  for (std::uint8_t reg = 0; reg < 16; ++reg) {
    if (reg != except) Restore(reg);
  }
}

void RegionBuilder::RestoreLow(std::uint8_t except) {
  for (std::uint8_t reg = 0; reg < 8; ++reg) {
    if (reg != except) Restore(reg);
  }
}

void RegionBuilder::RestoreNamed(const Item& item) {
  if (!item.valid) return;
  const std::uint16_t named = NamedRegisters(item.in);
  for (std::uint8_t reg = 0; reg < 16; ++reg) {
    if ((named & Bit(reg)) != 0 && !(reg == kRax && state_.flags_in_rax)) Restore(reg);
  }
}

void RegionBuilder::ToSlowStack() {
  Mark();
  out_.StoreAbsolute(kRsp, Slot(offsetof(CacheThread, program_rsp)));
  state_.rsp_saved = true;
  Mark();
  out_.MoveImm(kRsp, StackTop());
}

void RegionBuilder::FromSlowStack() {
  Mark();
  out_.LoadAbsolute(kRsp, Slot(offsetof(CacheThread, program_rsp)));
  state_.rsp_saved = false;
  Mark();
}

void RegionBuilder::FindLeaders() {
  bool after_gap = true;
  std::uint64_t expected = 0;
  for (const auto& [rip, item] : items_) {
    if (after_gap || rip != expected) leaders_.insert(rip);
    if (!item.valid) {
      after_gap = true;
      continue;
    }
    const Branch branch = item.in.branch;
    if (branch == Branch::kJump || branch == Branch::kConditional) leaders_.insert(item.in.target);
    after_gap = branch != Branch::kNone;
    expected = item.next();
  }
  leaders_.insert(first_);
}

void RegionBuilder::FindLoops() {
  using Loop = std::pair<std::uint64_t, std::uint64_t>;  // [first, last]
  std::vector<Loop> loops;
  for (const auto& [rip, item] : items_) {
    const Branch branch = item.in.branch;
    if (!item.valid || (branch != Branch::kJump && branch != Branch::kConditional)) continue;
    if (item.in.target <= rip && items_.contains(item.in.target))
      loops.emplace_back(item.in.target, rip);
  }
  const auto longer = [](const Loop& a, const Loop& b) {
    return a.second - a.first > b.second - b.first;
  };
  std::stable_sort(loops.begin(), loops.end(), longer);
  for (const auto& [first, last] : loops) {
    bool checks = false;
    std::uint16_t named = 0;
    std::vector<std::uint64_t> blocks;  // that keep none yet
    std::vector<std::uint8_t> registers(scratch_.begin(), scratch_.end());
    const auto end = items_.upper_bound(last);
    for (auto at = items_.find(first); at != end; ++at) {
      if (leaders_.contains(at->first)) {
        // Loops overlap where the compiler has put a part of one elsewhere: they keep the same.
        const std::uint8_t kept = KeptAt(at->first);
        if (kept == kNoRegister) {
          blocks.push_back(at->first);
        } else {
          registers.insert(registers.begin(), kept);
        }
      }
      if (!at->second.valid) continue;
      checks |= at->second.check;
      named |= NamedRegisters(at->second.in);
    }
    const auto unnamed = std::find_if(registers.begin(), registers.end(),
                                      [&](std::uint8_t reg) { return (named & Bit(reg)) == 0; });
    if (!checks || unnamed == registers.end()) continue;
    for (const std::uint64_t rip : blocks) kept_at_.emplace(rip, *unnamed);
  }
}

std::uint8_t RegionBuilder::KeptAt(std::uint64_t rip) const {
  const auto known = kept_at_.find(rip);
  return known != kept_at_.end() ? known->second : kNoRegister;
}

void RegionBuilder::BeginBlock(std::uint64_t rip) {
  kept_ = KeptAt(rip);
  RestoreAll(kept_);
  if (kept_ == kNoRegister) return;
  if (!KeptIsSaved()) {
    labels_[rip] = out_.here();
    state_.rip = rip;
    Mark();
    Save(kept_);
  } else {
    cold_.push_back([this, rip, kept = kept_] {
      labels_[rip] = out_.here();
      Begin(rip);
      Save(kept);
      out_.JumpTo(kept_labels_.at(rip));
    });
  }
  kept_labels_[rip] = out_.here();
}

void RegionBuilder::ChooseScratch(std::map<std::uint64_t, Item>::const_iterator at) {
  unsigned uses[16] = {};
  for (bool first = true; at != items_.end() && at->second.valid; ++at, first = false) {
    if (!first && leaders_.contains(at->first)) break;
    const std::uint16_t named = NamedRegisters(at->second.in);
    for (unsigned reg = 0; reg < 16; ++reg) uses[reg] += named >> reg & 1;
  }
  std::stable_sort(scratch_.begin(), scratch_.end(),
                   [&](std::uint8_t a, std::uint8_t b) { return uses[a] < uses[b]; });
}

void RegionBuilder::EmitExit(ExitKind kind, std::uint64_t argument) {
  // Arguments are 64 bits: program addresses are stored in two halves.
  const std::uint64_t at = Slot(offsetof(CacheThread, exit_argument));
  out_.StoreAbsoluteImm(at, static_cast<std::uint32_t>(argument));
  if (argument >> 31 != 0) {
    out_.Bytes({0xc7, 0x04, 0x25});  // movl $imm32, address
    out_.Imm32(at + 4);
    out_.Imm32(argument >> 32);
  }
  out_.StoreAbsoluteImm(Slot(offsetof(CacheThread, exit_kind)), static_cast<std::uint32_t>(kind));
  out_.JumpTo(cache_.exit_stub_);
}

void RegionBuilder::EmitBranch(std::uint64_t target) {
  const bool kept = KeptIsSaved() && KeptAt(target) == kept_;
  if (!kept) RestoreAll();
  out_.AlignAhead(1);
  links_.push_back({out_.Jump(), target, kept ? kept_ : kNoRegister});
}

void RegionBuilder::EmitBranchIf(std::uint8_t condition, std::uint64_t target) {
  if (KeptIsSaved() && KeptAt(target) != kept_) {  // out of the loop
    const std::uint32_t jump = out_.JumpIf(condition);
    cold_.push_back([this, jump, target, kept = kept_] {
      out_.SetDisplacement(jump, out_.here());
      Begin(target, kept);
      EmitBranch(target);
    });
    return;
  }
  out_.AlignAhead(2);
  links_.push_back({out_.JumpIf(condition), target, KeptIsSaved() ? kept_ : kNoRegister});
}

void RegionBuilder::EmitLookup() {
  out_.StoreAbsolute(kRax, Slot(offsetof(CacheThread, target)));
  state_.rip_is_in_rax = false;
  state_.rip_is_target = true;
  Mark();
  Save(kRcx);
  Save(kRdx);
  out_.Bytes({0x0f, 0xb7, 0xd0});  // movzwl %ax, %edx
  out_.Bytes({0x8d, 0x14, 0x12});  // lea (%rdx,%rdx), %edx
  cache_.EmitProbe(out_);
  out_.JumpTo(cache_.probe_stub_);
}

std::uint8_t RegionBuilder::Scratch(const Item& item, unsigned number) const {
  static constexpr std::array<std::uint8_t, 5> kLow = {kRsi, kRdi, kRbx, kRbp, kRdx};
  const std::uint16_t named = NamedRegisters(item.in);
  const auto choose = [&](const auto& candidates) {
    unsigned left = number;
    for (const bool saved : {true, false}) {
      for (const std::uint8_t reg : candidates) {
        if ((named & Bit(reg)) != 0 || ((at_item_ & Bit(reg)) != 0) != saved) continue;
        if (reg == group_.rights) continue;
        if (left-- == 0) return reg;
      }
    }
    return kNoRegister;
  };
  return NamesHighByte(item.in) ? choose(kLow) : choose(scratch_);
}

void RegionBuilder::EmitAddress(const Item& item, const MemoryOperand& operand, std::uint8_t to,
                                std::uint8_t other) {
  if (operand.base == kRip) {
    std::uint64_t address = item.next() + static_cast<std::uint64_t>(operand.displacement);
    if (operand.address_is_32_bits) address &= 0xffffffff;
    out_.MoveImm(to, address);
  } else {
    out_.LeaOperand(to, operand);
  }
  if (operand.segment == Segment::kNone) return;
  Save(other);
  out_.LoadAbsolute(other, Slot(operand.segment == Segment::kFs ? offsetof(CacheThread, fs_base)
                                                                : offsetof(CacheThread, gs_base)));
  out_.LeaSum(to, to, other);
}

}  // namespace trapline
