// Which code makes up a region, its blocks and what leads out of them.
#include "translator/region_builder.h"

#include <algorithm>
#include <bit>
#include <tuple>

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

void RegionBuilder::Restart(std::uint64_t address) {
  out_.Restart(address);
  region_ = std::make_unique<Region>();
  region_->begin = address;
  items_.clear();
  discovered_.clear();
  numbers_.Clear();
  links_.clear();
  out_of_line_.clear();
  tables_.Clear();
  mappings_.clear();
  state_ = {};
  kept_ = kNoRegister;
  checked_.clear();
  group_ = {};
  flags_live_outside_.clear();
  made_from_.clear();
  scratch_ = kScratchRegisters;
  stepped_ = 0;
}

bool RegionBuilder::Discover(std::uint64_t rip) {
  first_ = rip;
  std::vector<std::uint64_t> work = {rip};
  for (std::size_t i = 0; i < work.size(); ++i) {
    std::uint64_t at = work[i];
    while (discovered_.size() < cache_.region_limit_ && numbers_.Find(at) == 0 &&
           cache_.Find(at) == 0) {
      const Item* const item = AddItem(at);
      if (item == nullptr || !item->valid) break;
      if (item->jumps()) work.push_back(item->in.target);
      const Branch branch = item->in.branch;
      if (branch == Branch::kJump || branch == Branch::kIndirectJump || branch == Branch::kReturn)
        break;
      at = item->next();
    }
  }
  SortItems();
  return !items_.empty();
}

auto RegionBuilder::AddItem(std::uint64_t rip) -> const Item* {
  Item& item = discovered_.emplace_back();
  item.rip = rip;
  const std::size_t size = options_.read_code(rip, item.bytes, sizeof item.bytes);
  const auto decoded = Decode({item.bytes, size}, rip);
  // What else it touches only its own faults tell, outside.
  if (!decoded || !decoded->effects_known) {
    discovered_.pop_back();
    return nullptr;
  }
  item.report = rip == options_.report_at && decoded->length == kReportLength;
  if (!MustStep(*decoded) || item.report) {
    item.valid = true;
    item.in = *decoded;
    const Instrument instrument = item.in.operand_count == 0 ? Instrument::kNone
                                  : options_.instrument      ? options_.instrument(rip)
                                                             : Instrument::kCheck;
    // An instrumented one leaves the cache when it sets the trap flag.
    const bool pops_flags = item.in.map == kMapOneByte && item.in.opcode == 0x9d;
    item.instrument = instrument != Instrument::kNone || pops_flags;
    item.check = instrument == Instrument::kCheck;
    item.only_reads = OnlyReadsMemory(item.in);
    item.atomic =
        (item.in.atomic && !item.only_reads) ||
        (item.check && options_.is_atomic && MayComeOfAtomics(item.in) && options_.is_atomic(rip));
    item.flag_use = StatusFlagUse(item.in);
    item.named = NamedRegisters(item.in);
    item.written = MaybeWrittenRegisters(item.in);
  }
  numbers_.Set(rip, static_cast<std::uint32_t>(discovered_.size()));
  return &item;
}

void RegionBuilder::SortItems() {
  std::vector<std::pair<std::uint64_t, std::size_t>> order;
  order.reserve(discovered_.size());
  for (std::size_t i = 0; i < discovered_.size(); ++i) order.emplace_back(discovered_[i].rip, i);
  std::sort(order.begin(), order.end());
  items_.reserve(order.size());
  for (const auto& [rip, number] : order) {
    items_.push_back(discovered_[number]);
    numbers_.Set(rip, static_cast<std::uint32_t>(items_.size()));
  }
}

void RegionBuilder::Emit() {
  FindLeaders();
  if (options_.table_pointers.is_one) FindTablePointerStores();
  FindLoops();
  if (options_.filter) FindLiveFlags();
  for (Item& item : items_) {
    if (item.leader) {
      checked_.clear();
      ChooseScratch(item);
      BeginBlock(item);
    }
    // Only where every register is in its place may others come in.
    if (state_.saved == 0) item.label = out_.here();
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
    const Item* const following = &item + 1;
    if (following == end() || following->rip != item.next()) {
      RestoreAll();
      EmitBranch(item.next());
      state_ = {};
    }
  }
  group_ = {};
  // What is out of line may have checks that are out of line.
  for (std::size_t i = 0; i < out_of_line_.size(); ++i) {
    const auto part = out_of_line_[i];
    std::visit([this](const auto& kind) { EmitOutOfLine(kind); }, part);
  }
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
    const Item* const item = FindItem(link.target);
    const std::uint64_t label = item == nullptr ? 0 : link.kept ? item->kept_label : item->label;
    const std::uint64_t target = label != 0 ? label : cache_.Find(link.target);
    cache_.StoreDisplacement(link.displacement, target != 0 ? target : link.stub);
    link.linked = target != 0;
    if (label == 0 && target != 0) cache_.NoteLinked(cache_.links_.size(), target);
    region_->links.push_back(cache_.links_.size());
    cache_.links_.push_back(link);
  }
  for (const Item& item : items_) {
    if (item.label != 0) cache_.entries_.Set(item.rip, static_cast<std::uint32_t>(item.label));
    CodeCache::AddRange(made_from_, item.rip,
                        item.rip + std::max<std::uint64_t>(item.in.length, 1) - 1);
    ++cache_.statistics_.instructions;
    cache_.statistics_.instrumented += item.instrument;
    cache_.statistics_.blocks += item.leader;
    cache_.blocks_ += item.leader;
  }
  region_->made_from.assign(made_from_.begin(), made_from_.end());
  cache_.NoteMadeFrom(*region_);
  ++cache_.statistics_.regions;
  cache_.statistics_.links += links_.size();
  cache_.statistics_.stepped += stepped_;
  region_->mappings.assign(mappings_.begin(), mappings_.end());
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
  const std::uint32_t offset = out_.offset();
  const bool again = !mappings_.empty() && mappings_.back().offset == offset;
  Mapping& mapping = again ? mappings_.back() : mappings_.emplace_back();
  mapping = state_;
  mapping.offset = offset;
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

void RegionBuilder::RestoreThose(std::uint32_t registers) {
  for (std::uint32_t left = registers & state_.saved; left != 0; left &= left - 1)
    Restore(static_cast<std::uint8_t>(std::countr_zero(left)));
}

void RegionBuilder::RestoreNamed(const Item& item) {
  RestoreThose(state_.flags_in_rax ? item.named & ~Bit(kRax) : item.named);
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
  for (Item& item : items_) {
    if (after_gap || item.rip != expected) item.leader = true;
    if (item.jumps()) {
      if (Item* const target = FindItem(item.in.target)) target->leader = true;
    }
    after_gap = !item.valid || item.in.branch != Branch::kNone;
    expected = item.next();
  }
  FindItem(first_)->leader = true;
}

void RegionBuilder::FindTablePointerStores() {
  ConstantRegisters registers;
  constants_.clear();
  stores_.clear();
  bool from_before = false;
  for (Item& item : items_) {
    if (item.leader) registers.Clear();
    if (!item.valid) continue;
    if (item.check && !item.atomic && !item.report) {
      const ConstantWords words = registers.Words(StoredBy(item.in, item.bytes));
      if (words.count != 0 && !words.Has(ConstantWord::Kind::kComputed)) {
        stores_.emplace_back(&item, words);
        from_before |= words.Has(ConstantWord::Kind::kUnknown);
      }
    }
    const ConstantWords made = registers.Follow(item.in, item.bytes, item.rip, item.written);
    if (made.count != 0) constants_.push_back(made);
  }
  if (stores_.empty()) return;
  for (const ConstantWords& words : constants_) tables_.Add(words);
  if (from_before) tables_.AddBefore(options_.read_code, first_);
  if (tables_.found().empty()) return;
  for (const auto& [item, words] : stores_) item->may_store_tables = tables_.MayHold(words);
}

void RegionBuilder::FindLoops() {
  struct Loop {
    Item *first, *last;
    std::uint64_t length() const { return last->rip - first->rip; }
  };
  std::vector<Loop> loops;
  for (Item& item : items_) {
    if (!item.jumps() || item.in.target > item.rip) continue;
    if (Item* const target = FindItem(item.in.target)) loops.push_back({target, &item});
  }
  std::stable_sort(loops.begin(), loops.end(),
                   [](const Loop& a, const Loop& b) { return a.length() > b.length(); });
  for (const auto& [first, last] : loops) {
    bool checks = false;
    std::uint32_t named = 0;
    for (const Item* item = first; item <= last && (named & kScratchSet) != kScratchSet; ++item) {
      checks |= item->check;
      named |= item->named;
    }
    if (!checks || (named & kScratchSet) == kScratchSet) continue;
    const auto is_unnamed = [&](std::uint8_t reg) { return (named & Bit(reg)) == 0; };
    std::uint8_t unnamed =
        *std::find_if(kScratchRegisters.begin(), kScratchRegisters.end(), is_unnamed);
    // Loops overlap where the compiler has put a part of one elsewhere: they keep the same.
    for (const Item* item = first; item <= last; ++item) {
      if (item->kept != kNoRegister && is_unnamed(item->kept)) unnamed = item->kept;
    }
    for (Item* item = first; item <= last; ++item) {
      if (item->leader && item->kept == kNoRegister) item->kept = unnamed;
    }
  }
}

std::uint8_t RegionBuilder::KeptAt(std::uint64_t rip) const {
  const Item* const item = FindItem(rip);
  return item != nullptr ? item->kept : kNoRegister;
}

void RegionBuilder::BeginBlock(Item& item) {
  kept_ = item.kept;
  RestoreAll(kept_);
  if (kept_ == kNoRegister) return;
  if (!KeptIsSaved()) {
    item.label = out_.here();
    state_.rip = item.rip;
    Mark();
    Save(kept_);
  } else {
    out_of_line_.push_back(LoopEntry{&item});
  }
  item.kept_label = out_.here();
}

void RegionBuilder::EmitOutOfLine(const LoopEntry& entry) {
  Item& item = *entry.item;
  item.label = out_.here();
  Begin(item.rip);
  Save(item.kept);
  out_.JumpTo(item.kept_label);
}

void RegionBuilder::ChooseScratch(const Item& first) {
  // {uses, place in the order so far, register}
  std::array<std::tuple<unsigned, unsigned, std::uint8_t>, kScratchRegisters.size()> order;
  for (unsigned i = 0; i < order.size(); ++i) order[i] = {0, i, scratch_[i]};
  for (const Item* item = &first; item != end() && item->valid; ++item) {
    if (item != &first && item->leader) break;
    for (auto& [uses, place, reg] : order) uses += item->named >> reg & 1;
  }
  std::sort(order.begin(), order.end());
  for (unsigned i = 0; i < order.size(); ++i) scratch_[i] = std::get<2>(order[i]);
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
    out_of_line_.push_back(LoopExit{out_.JumpIf(condition), target, kept_});
    return;
  }
  out_.AlignAhead(2);
  links_.push_back({out_.JumpIf(condition), target, KeptIsSaved() ? kept_ : kNoRegister});
}

void RegionBuilder::EmitOutOfLine(const LoopExit& exit) {
  out_.SetDisplacement(exit.jump, out_.here());
  Begin(exit.target, exit.kept);
  EmitBranch(exit.target);
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
  out_.StoreAbsoluteImm(Slot(offsetof(CacheThread, lookup)),
                        static_cast<std::uint32_t>(out_.here()));
  out_.JumpTo(cache_.probe_stub_);
}

std::uint8_t RegionBuilder::Scratch(const Item& item, unsigned number) const {
  static constexpr std::array<std::uint8_t, 5> kLow = {kRsi, kRdi, kRbx, kRbp, kRdx};
  const auto choose = [&](const auto& candidates) {
    unsigned left = number;
    for (const bool saved : {true, false}) {
      for (const std::uint8_t reg : candidates) {
        if ((item.named & Bit(reg)) != 0 || ((at_item_ & Bit(reg)) != 0) != saved) continue;
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
