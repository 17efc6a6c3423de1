#include "translator/code_cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <iterator>
#include <new>
#include <set>

#include "translator/emitter.h"
#include "translator/register_use.h"

namespace trapline {
namespace {

constexpr std::uint64_t kTablePairs = 65536;
constexpr unsigned kProbes = 8;
// So many lookups whose target has no place in the table, each an exit, cost as much as a flush.
constexpr std::uint64_t kMostUnplaced = 4096;
static_assert(CacheMemory::kTableSize == (kTablePairs + kProbes) * 16);
constexpr std::uint8_t kConditionEqual = 4;
constexpr std::uint8_t kConditionNotEqual = 5;
constexpr unsigned kReportLength = 2;  // bytes of TranslatorOptions::report_at
constexpr unsigned kFlagSearch = 16;   // instructions of called functions looked at for flags

// At a multiple of `alignment`, a power of two of at least a page.
void* MapLow(std::uint64_t size, int protection, std::uint64_t alignment = 4096) {
  size = (size + 4095) & ~std::uint64_t{4095};
  auto* const memory =
      static_cast<char*>(mmap(nullptr, size + alignment, protection,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_32BIT, -1, 0));
  if (memory == MAP_FAILED) throw std::bad_alloc();
  const std::uint64_t before = -reinterpret_cast<std::uint64_t>(memory) & (alignment - 1);
  if (before != 0) munmap(memory, before);
  munmap(memory + before + size, alignment - before);
  return memory + before;
}

// x87, SSE, AVX and AVX-512 state.
constexpr std::uint32_t kVectorComponents = 0xe7;

// Keeps the caller's floating-point control words over a run of the program, which may leave x87
// exceptions pending.
class NativeFloatControl {
 public:
  NativeFloatControl() { asm volatile("stmxcsr %0; fnstcw %1" : "=m"(mxcsr_), "=m"(x87_)); }
  ~NativeFloatControl() { asm volatile("ldmxcsr %0; fninit; fldcw %1" ::"m"(mxcsr_), "m"(x87_)); }
  NativeFloatControl(const NativeFloatControl&) = delete;
  NativeFloatControl& operator=(const NativeFloatControl&) = delete;

 private:
  std::uint32_t mxcsr_ = 0;
  std::uint16_t x87_ = 0;
};

std::uint64_t AddressOf(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

// None for kNoRegister.
std::uint32_t Bit(std::uint8_t reg) { return reg < 16 ? 1u << reg : 0; }

bool IsRipRelative(const Instruction& in) {
  return in.modrm_is_memory() && (in.modrm & 0xc7) == 0x05;
}

bool IsOneByte(const Instruction& in, std::uint8_t opcode) {
  return in.encoding == Encoding::kLegacy && in.map == kMapOneByte && in.opcode == opcode;
}

bool IsString(const Instruction& in) {
  return in.operand_count != 0 && in.operands[0].pattern == Pattern::kRepeated;
}

// Instructions that the cache does not run: the driver steps them.
bool MustStep(const Instruction& in) {
  if (!in.effects_known || in.branch == Branch::kOther) return true;
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

struct CodeCache::Item {
  std::uint64_t rip = 0;
  bool valid = false;       // false: no instruction, or one that must be stepped
  bool instrument = false;  // goes through the mirror
  bool check = false;
  bool atomic = false;      // told of before and after
  bool only_reads = false;  // OnlyReadsMemory: a load that is known to be atomic
  bool report = false;      // TranslatorOptions::report_at
  bool flags_live = false;  // from here on
  Instruction in;
  std::uint8_t bytes[kMaximumInstructionLength] = {};

  std::uint64_t next() const { return rip + in.length; }
};

struct CodeCache::Region {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::vector<Mapping> mappings;                                      // offsets from begin
  std::vector<std::pair<std::uint64_t, std::uint64_t>> instructions;  // [first, last] program byte
  std::vector<std::uint64_t> links;
  bool removed = false;
};

// Copies one region. Everything it makes is added to the cache at the end, so that nothing is left
// of a failure.
class CodeCache::RegionBuilder {
 public:
  RegionBuilder(CodeCache& cache, std::uint64_t address)
      : cache_(cache),
        options_(cache.options_),
        out_(address),
        region_(std::make_unique<Region>()) {
    region_->begin = address;
  }

  bool Discover(std::uint64_t rip) {
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
        if (size == 0 && at == rip) return false;
        const auto decoded = Decode({item.bytes, size}, at);
        item.report = at == options_.report_at && decoded && decoded->length == kReportLength;
        if (!decoded || (MustStep(*decoded) && !item.report)) break;
        item.valid = true;
        item.in = *decoded;
        const Instrument instrument = item.in.operand_count == 0 ? Instrument::kNone
                                      : options_.instrument      ? options_.instrument(at)
                                                                 : Instrument::kCheck;
        item.instrument = instrument != Instrument::kNone;
        item.check = instrument == Instrument::kCheck;
        item.only_reads = OnlyReadsMemory(item.in);
        item.atomic =
            (item.in.atomic && !item.only_reads) ||
            (item.check && options_.is_atomic && MayBeAtomic(item.in) && options_.is_atomic(at));
        const Branch branch = item.in.branch;
        if (branch == Branch::kConditional || branch == Branch::kJump)
          work.push_back(item.in.target);
        if (branch == Branch::kJump || branch == Branch::kIndirectJump || branch == Branch::kReturn)
          break;
        at = item.next();
      }
    }
    return true;
  }

  void Emit() {
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
      Begin(link.target);
      if (link.kept) {
        HaveKept();
        Restore(kept_);
      }
      const std::uint64_t number = cache_.links_.size() + (&link - links_.data());
      EmitExit(ExitKind::kLink, number);
    }
  }

  const Emitter& out() const { return out_; }

  // Adds the region to the cache; its bytes are in place.
  void Publish() {
    for (const PendingLink& pending : links_) {
      Link link;
      link.displacement = region_->begin + pending.displacement;
      link.stub = pending.stub;
      link.target = pending.target;
      link.region = region_.get();
      link.kept = pending.kept;
      region_->links.push_back(cache_.links_.size());
      cache_.links_.push_back(link);
      const auto& labels = pending.kept ? kept_labels_ : labels_;
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
    region_->end = region_->begin + out_.bytes().size();
    const std::uint64_t begin = region_->begin;
    cache_.regions_[begin] = std::move(region_);
  }

 private:
  struct PendingLink {
    std::uint32_t displacement;
    std::uint64_t target;
    bool kept;  // it is taken with kept_ saved
    std::uint64_t stub = 0;
  };

  // --- what the program's registers are, at every byte

  void Begin(std::uint64_t rip) {
    state_ = {};
    state_.rip = rip;
    Mark();
  }
  void Mark() {
    state_.offset = out_.offset();
    if (!region_->mappings.empty() && region_->mappings.back().offset == state_.offset)
      region_->mappings.pop_back();
    region_->mappings.push_back(state_);
  }

  // --- thread page

  std::uint64_t Slot(std::size_t offset) const { return cache_.SlotAddress(offset); }
  std::uint64_t Saved(std::uint8_t reg) const {
    return Slot(offsetof(CacheThread, saved)) + 8u * reg;
  }
  std::uint64_t StackTop() const {
    return Slot(offsetof(CacheThread, stack)) + CacheThread::kStackSize;
  }

  void Save(std::uint8_t reg) {
    if ((state_.saved & Bit(reg)) != 0) return;
    out_.StoreAbsolute(reg, Saved(reg));
    state_.saved = static_cast<std::uint16_t>(state_.saved | Bit(reg));
    Mark();
  }
  void Restore(std::uint8_t reg) {
    if ((state_.saved & Bit(reg)) == 0) return;
    if (reg == kRax && state_.flags_in_rax) EmitFlagsBack();
    if (reg == group_.rights) group_ = {};
    out_.LoadAbsolute(reg, Saved(reg));
    state_.saved = static_cast<std::uint16_t>(state_.saved & ~Bit(reg));
    Mark();
  }
  void RestoreAll(std::uint8_t except = kNoRegister) {
    for (std::uint8_t reg = 0; reg < 16; ++reg) {
      if (reg != except) Restore(reg);
    }
  }

  void RestoreLow(std::uint8_t except = kNoRegister) {
    for (std::uint8_t reg = 0; reg < 8; ++reg) {
      if (reg != except) Restore(reg);
    }
  }
  // All but rax while the flags are there.
  void RestoreNamed(const Item& item) {
    if (!item.valid) return;
    const std::uint16_t named = NamedRegisters(item.in);
    for (std::uint8_t reg = 0; reg < 16; ++reg) {
      if ((named & Bit(reg)) != 0 && !(reg == kRax && state_.flags_in_rax)) Restore(reg);
    }
  }

  void ToSlowStack() {
    Mark();
    out_.StoreAbsolute(kRsp, Slot(offsetof(CacheThread, program_rsp)));
    state_.rsp_saved = true;
    Mark();
    out_.MoveImm(kRsp, StackTop());
  }
  void FromSlowStack() {
    Mark();
    out_.LoadAbsolute(kRsp, Slot(offsetof(CacheThread, program_rsp)));
    state_.rsp_saved = false;
    Mark();
  }

  // --- blocks

  // Instructions that something other than their predecessor may go to.
  void FindLeaders() {
    bool after_gap = true;
    std::uint64_t expected = 0;
    for (const auto& [rip, item] : items_) {
      if (after_gap || rip != expected) leaders_.insert(rip);
      if (!item.valid) {
        after_gap = true;
        continue;
      }
      const Branch branch = item.in.branch;
      if (branch == Branch::kJump || branch == Branch::kConditional)
        leaders_.insert(item.in.target);
      after_gap = branch != Branch::kNone;
      expected = item.next();
    }
    leaders_.insert(first_);
  }

  // In the blocks of loops one scratch register is saved from end to end, and branches between them
  // leave it so: saved and restored in each block it would go through memory in every round. None
  // where the loops' instructions name them all, or none of them is checked.
  void FindLoops() {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> loops;  // [first, last]
    for (const auto& [rip, item] : items_) {
      const Branch branch = item.in.branch;
      if (!item.valid || (branch != Branch::kJump && branch != Branch::kConditional)) continue;
      if (item.in.target <= rip && items_.contains(item.in.target))
        loops.emplace_back(item.in.target, rip);
    }
    const auto in_loop = [&](std::uint64_t rip) {
      return std::any_of(loops.begin(), loops.end(),
                         [&](const auto& loop) { return loop.first <= rip && rip <= loop.second; });
    };
    bool checks = false;
    std::uint16_t named = 0;
    for (const auto& [rip, item] : items_) {
      if (!item.valid || !in_loop(rip)) continue;
      checks |= item.check;
      named |= NamedRegisters(item.in);
    }
    const auto unnamed = std::find_if(scratch_.begin(), scratch_.end(),
                                      [&](std::uint8_t reg) { return (named & Bit(reg)) == 0; });
    if (!checks || unnamed == scratch_.end()) return;
    kept_ = *unnamed;
    std::copy_if(leaders_.begin(), leaders_.end(), std::inserter(in_loops_, in_loops_.end()),
                 [&](std::uint64_t rip) { return items_.contains(rip) && in_loop(rip); });
  }
  void HaveKept() {
    state_.saved = static_cast<std::uint16_t>(Bit(kept_));
    Mark();
  }
  bool KeptIsSaved() const { return kept_ != kNoRegister && (state_.saved & Bit(kept_)) != 0; }

  // A block of a loop has two labels: where others come in, with all registers in their places, and
  // behind that, where kept_ has been saved.
  void BeginBlock(std::uint64_t rip) {
    if (!in_loops_.contains(rip)) return RestoreAll();
    RestoreAll(kept_);
    if (!KeptIsSaved()) {
      labels_[rip] = out_.here();
      state_.rip = rip;
      Mark();
      Save(kept_);
    } else {
      cold_.push_back([this, rip] {
        labels_[rip] = out_.here();
        Begin(rip);
        Save(kept_);
        out_.JumpTo(kept_labels_.at(rip));
      });
    }
    kept_labels_[rip] = out_.here();
  }

  // The scratch registers of a block, those first that its instructions do not name.
  void ChooseScratch(std::map<std::uint64_t, Item>::const_iterator at) {
    unsigned uses[16] = {};
    for (bool first = true; at != items_.end() && at->second.valid; ++at, first = false) {
      if (!first && leaders_.contains(at->first)) break;
      const std::uint16_t named = NamedRegisters(at->second.in);
      for (unsigned reg = 0; reg < 16; ++reg) uses[reg] += named >> reg & 1;
    }
    std::stable_sort(scratch_.begin(), scratch_.end(),
                     [&](std::uint8_t a, std::uint8_t b) { return uses[a] < uses[b]; });
  }

  // Within a block an access that was checked is not checked again: nothing that ends the thread's
  // epoch is in between.
  struct Checked {
    MemoryOperand operand;
    bool write;
  };
  bool AlreadyChecked(const MemoryOperand& operand) const {
    return std::any_of(checked_.begin(), checked_.end(), [&](const Checked& checked) {
      const MemoryOperand& other = checked.operand;
      return other.base == operand.base && other.index == operand.index &&
             other.scale == operand.scale && other.displacement == operand.displacement &&
             other.segment == operand.segment &&
             other.address_is_32_bits == operand.address_is_32_bits && other.size == operand.size &&
             (checked.write || !operand.writes);
    });
  }
  void ForgetChecks(const Item& item) {
    if (item.atomic || item.in.lock_prefix || item.in.branch != Branch::kNone) {
      checked_.clear();
      return;
    }
    const std::uint16_t written = MaybeWrittenRegisters(item.in);
    std::erase_if(checked_, [&](const Checked& checked) {
      const auto changed = [&](std::uint8_t reg) { return reg < 16 && (written & Bit(reg)) != 0; };
      return changed(checked.operand.base) || changed(checked.operand.index);
    });
  }

  // --- leaving

  void EmitExit(ExitKind kind, std::uint64_t argument) {
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

  // With all registers in their places but for kept_, if that is saved.
  void EmitBranch(std::uint64_t target) {
    const bool kept = KeptIsSaved() && in_loops_.contains(target);
    if (!kept) RestoreAll();
    out_.AlignAhead(1);
    links_.push_back({out_.Jump(), target, kept});
  }
  void EmitBranchIf(std::uint8_t condition, std::uint64_t target) {
    if (KeptIsSaved() && !in_loops_.contains(target)) {  // out of the loop
      const std::uint32_t jump = out_.JumpIf(condition);
      cold_.push_back([this, jump, target] {
        out_.SetDisplacement(jump, out_.here());
        state_ = {};
        state_.rip = target;
        HaveKept();
        EmitBranch(target);
      });
      return;
    }
    out_.AlignAhead(2);
    links_.push_back({out_.JumpIf(condition), target, KeptIsSaved()});
  }

  // The target is in rax, which is saved.
  void EmitLookup() {
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
  // --- checks

  // Scratch registers that the instruction does not name: one that is saved already if possible.
  std::uint8_t Scratch(const Item& item, unsigned number) const {
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

  // to = linear address of the operand, all registers being the program's but for saved ones it
  // does not name.
  void EmitAddress(const Item& item, const MemoryOperand& operand, std::uint8_t to,
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
    out_.LoadAbsolute(other,
                      Slot(operand.segment == Segment::kFs ? offsetof(CacheThread, fs_base)
                                                           : offsetof(CacheThread, gs_base)));
    out_.LeaSum(to, to, other);
  }

  void EmitSlowCall(const AccessSite* site, std::uint64_t stub) {
    ToSlowStack();
    out_.Bytes({0x68});  // push $imm32
    out_.Imm32(AddressOf(site));
    out_.CallTo(stub);
    FromSlowStack();
  }

  void EmitSimpleCheck(const Item& item, const MemoryOperand& operand) {
    MemoryOperand seen = operand;
    if (seen.base == kRip) seen.displacement += static_cast<std::int64_t>(item.next());
    if (item.only_reads) seen.writes = false;
    const bool filtered = options_.filter && !item.atomic;
    if (filtered && !item.only_reads && AlreadyChecked(seen)) return;
    const AccessSite* const placed = cache_.NewSite(SiteOf(item, operand));
    if (!filtered) {
      const std::uint8_t address = EmitAddressToKeep(item, operand);
      out_.StoreAbsolute(address, Slot(offsetof(CacheThread, access_address)));
      EmitSlowCall(placed, cache_.slow_stub_);
      return;
    }
    checked_.push_back({seen, seen.writes});
    if (options_.leaving_out) {
      EmitSectorCheck(item, operand, seen, placed);
    } else {
      EmitFilterCheck(item, operand, seen, placed);
    }
    if (state_.flags_in_rax && !LetsFlagsBeInRax(item)) Restore(kRax);
  }

  // A base register alone is the address.
  static bool IsBaseAlone(const MemoryOperand& operand) {
    return MayBeInGroup(operand) && operand.displacement == 0;
  }
  // The register that holds the operand's address, its base or a scratch register.
  std::uint8_t EmitAddressToKeep(const Item& item, const MemoryOperand& operand) {
    if (IsBaseAlone(operand)) return operand.base;
    const std::uint8_t address = Scratch(item, 0);
    Save(address);
    EmitAddress(item, operand, address, Scratch(item, 1));
    return address;
  }

  // Where flags are live, they are in rax from here on.
  void KeepFlags(const Item& item) {
    if (state_.flags_in_rax || !item.flags_live) return;
    Save(kRax);
    out_.Bytes({0x9f});              // lahf
    out_.Bytes({0x0f, 0x90, 0xc0});  // seto %al
    state_.flags_in_rax = true;
    Mark();
  }

  // to = the address in `address`, which is in its slot if that is rax and the flags are there.
  void CopyAddress(std::uint8_t to, std::uint8_t address) {
    if (state_.flags_in_rax && address == kRax) {
      out_.LoadAbsolute(to, Saved(kRax));
    } else {
      out_.Move(to, address);
    }
  }

  // Every access is looked for in the filter; out of line is what becomes of those not found.
  void EmitFilterCheck(const Item& item, const MemoryOperand& operand, const MemoryOperand& seen,
                       const AccessSite* placed) {
    const std::uint8_t address = EmitAddressToKeep(item, operand);
    const std::uint8_t other = Scratch(item, 1);
    Save(other);
    KeepFlags(item);
    CopyAddress(other, address);
    EmitFilter(seen, address, other);
    const std::uint32_t to_slow = out_.JumpIf(kConditionNotEqual);
    cold_.push_back([=, this, at_check = state_, back = out_.here()] {
      out_.SetDisplacement(to_slow, out_.here());
      state_ = at_check;
      Mark();
      EmitArgument(address, other);
      EmitSlowCall(placed, cache_.StubFor(*placed));
      out_.JumpTo(back);
    });
  }

  // Most accesses of hot code are left out: that is asked first, with one scratch register, and all
  // else, the address in full included, is out of line.
  void EmitSectorCheck(const Item& item, const MemoryOperand& operand, const MemoryOperand& seen,
                       const AccessSite* placed) {
    const bool base_alone = IsBaseAlone(operand);
    // The address cannot be computed again once the flags are in rax.
    const bool needs_rax = !base_alone && !state_.flags_in_rax && item.flags_live &&
                           (operand.base == kRax || operand.index == kRax);
    Telling telling{item, operand, seen, placed};
    if (!needs_rax && (InGroup(operand) || EmitGroup(item, operand))) {
      KeepFlags(item);
      EmitTest(*placed, group_.rights);
      telling.computes = !base_alone;
      telling.address = base_alone ? operand.base : Scratch(item, 0);
      telling.cell = Scratch(item, base_alone ? 0 : 1);
      return TellOutOfLine(telling, {out_.JumpIf(kConditionEqual)});
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
    std::vector<std::uint32_t> jumps = {out_.JumpIf(kConditionEqual)};
    if (operand.size >= 16) {
      if (telling.computes) {
        EmitAddress(item, operand, sector, other);
      } else {
        CopyAddress(sector, telling.address);
      }
      out_.Lea(sector, sector, static_cast<std::int32_t>(operand.size - 1));
      EmitRights(sector);
      EmitTest(*placed, sector);
      jumps.push_back(out_.JumpIf(kConditionEqual));
    }
    TellOutOfLine(telling, jumps);
  }

  // An access that is not left out.
  struct Telling {
    const Item& item;
    MemoryOperand operand, seen;
    const AccessSite* placed;
    bool computes = false;  // its address, into `address`; else that holds it
    std::uint8_t address = kNoRegister;
    std::uint8_t cell = kNoRegister;  // a scratch register
  };
  // Where the jumps lead to: the access is looked for in the filter and, if it is not there, told.
  void TellOutOfLine(const Telling& telling, const std::vector<std::uint32_t>& jumps) {
    cold_.push_back([=, this, at_check = state_, back = out_.here()] {
      for (const std::uint32_t jump : jumps) out_.SetDisplacement(jump, out_.here());
      state_ = at_check;
      Mark();
      const auto& [item, operand, seen, placed, computes, address, cell] = telling;
      if (computes) {
        Save(address);
        EmitAddress(item, operand, address, cell);
      }
      Save(cell);
      CopyAddress(cell, address);
      EmitFilter(seen, address, cell);
      EmitArgument(address, cell);
      for (const std::uint8_t reg : {cell, address}) {
        if ((at_check.saved & Bit(reg)) == 0) Restore(reg);
      }
      out_.SetDisplacement(out_.JumpIf(kConditionEqual), back);
      EmitSlowCall(placed, cache_.StubFor(*placed));
      out_.JumpTo(back);
    });
  }
  // What the slow path is told; `other` is free. Changes no flags.
  void EmitArgument(std::uint8_t address, std::uint8_t other) {
    const bool in_slot = state_.flags_in_rax && address == kRax;
    if (in_slot) CopyAddress(other, address);
    out_.StoreAbsolute(in_slot ? other : address, Slot(offsetof(CacheThread, access_address)));
  }

  // Accesses of a block that lie within the length of a sector, by their distances from one base
  // register, as pushes and pops do: what the thread need not tell of both sectors that they may
  // lie in is found out once.
  struct Group {
    std::uint8_t rights = kNoRegister;  // a scratch register; none: there is no group
    std::uint8_t base = kNoRegister;
    std::int64_t low = 0, high = 0;  // [low, high) from the base at the first of them
    std::int64_t moved = 0;          // the base since then
    unsigned members = 0;
    std::uint64_t last = 0;   // instruction
    std::uint16_t named = 0;  // by instructions up to that
  };
  // Fewer cost as much one by one: 6 instructions each; of a group 11, 2 for each, and rights
  // saved.
  static constexpr unsigned kFewestInGroup = 4;

  static bool MayBeInGroup(const MemoryOperand& operand) {
    return operand.base < 16 && operand.index == kNoRegister && operand.segment == Segment::kNone &&
           !operand.address_is_32_bits;
  }
  bool InGroup(const MemoryOperand& operand) const {
    const std::int64_t low = group_.moved + operand.displacement;
    return group_.rights != kNoRegister && MayBeInGroup(operand) && operand.base == group_.base &&
           low >= group_.low && low + operand.size <= group_.high;
  }
  // Begins a group with this operand, unless that does not pay.
  bool EmitGroup(const Item& item, const MemoryOperand& operand) {
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
    EmitRights(group.rights);
    EmitRights(end);
    out_.And32(group.rights, end);
    return true;
  }
  Group FindGroup(const Item& first, std::uint8_t base) const {
    const std::int64_t longest = std::int64_t{1} << options_.leaving_out->sector_bits;
    Group group;
    group.base = base;
    std::int64_t moved = 0;
    std::uint16_t named = 0;
    std::uint64_t expected = first.rip;
    for (auto at = items_.find(first.rip); at != items_.end(); ++at) {
      const Item& item = at->second;
      if (item.rip != expected || (&item != &first && leaders_.contains(item.rip))) break;
      if (!item.valid || item.report || item.atomic || item.in.lock_prefix || IsString(item.in))
        break;
      const std::uint16_t named_here = NamedRegisters(item.in);
      named |= named_here;
      // One for the group, two for checks of other accesses.
      const auto free = std::count_if(scratch_.begin(), scratch_.end(), [&](std::uint8_t reg) {
        return (named_here & Bit(reg)) == 0;
      });
      if (free < 3) break;
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
  // A number of 4, 1 or 0 bytes in the instruction.
  static std::int64_t SignedAt(const Item& item, unsigned offset, unsigned size) {
    std::int8_t byte = 0;
    std::int32_t word = 0;
    std::memcpy(&byte, item.bytes + offset, size == 1 ? 1 : 0);
    std::memcpy(&word, item.bytes + offset, size == 4 ? 4 : 0);
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): the sign is extended, as the processor does
    return size == 1 ? std::int64_t{byte} : std::int64_t{word};
  }
  // By how much the instruction changes the register; nothing: nobody knows.
  static std::optional<std::int64_t> ChangeOf(const Item& item, std::uint8_t reg) {
    const Instruction& in = item.in;
    if ((MaybeWrittenRegisters(in) & Bit(reg)) == 0) return 0;
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
  // Behind the instruction.
  void MoveGroup(const Item& item) {
    if (group_.rights == kNoRegister) return;
    const auto change = ChangeOf(item, group_.base);
    if (item.rip >= group_.last || !change) {
      group_ = {};  // rights is a scratch register as others are
    } else {
      group_.moved += *change;
    }
  }

  // Compares the filter's cell of an access at `address`, which `other` is a copy of, with what it
  // holds if the access is to be skipped.
  void EmitFilter(const MemoryOperand& seen, std::uint8_t address, std::uint8_t other) {
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
    out_.CompareAbsolute(other,
                         Slot(offsetof(CacheThread, signature)) + 8u * SignatureIndex(seen.size));
  }

  // reg: an address, then what the thread need not tell of its sector.
  void EmitRights(std::uint8_t reg) {
    const LeavingOut& leaving_out = *options_.leaving_out;
    const auto low = static_cast<std::uint8_t>(reg & 7);
    const bool high = reg >= 8;
    if (high) out_.Bytes({0x41});
    out_.Bytes({0xc1, static_cast<std::uint8_t>(0xe8 | low),
                leaving_out.sector_bits});  // shr $sector_bits, reg32
    for (const std::uint64_t table : {leaving_out.uses, leaving_out.need_not_tell}) {
      if (high) out_.Bytes({0x45});
      out_.Bytes({0x0f, 0xb6, static_cast<std::uint8_t>(0x80 | low << 3 | low)});
      out_.Imm32(table);  // movzbl table(reg), reg32
    }
  }
  // Tests whether the site leaves out what it accesses, by its rights; not zero: yes.
  void EmitTest(const AccessSite& site, std::uint8_t rights) {
    out_.Bytes({static_cast<std::uint8_t>(rights >= 8 ? 0x44 : 0x40), 0x84,
                static_cast<std::uint8_t>(0x04 | (rights & 7) << 3), 0x25});
    out_.Imm32(AddressOf(&site.leaves_out));  // test rights8, leaves_out
  }

  AccessSite SiteOf(const Item& item, const MemoryOperand& operand) const {
    AccessSite site;
    site.rip = item.rip;
    site.size = operand.size;
    site.read = operand.reads;
    site.write = operand.writes && !item.only_reads;
    site.atomic = item.atomic;
    site.locked = item.in.atomic;
    site.exchange = item.in.atomic && IsExchange(item.in);
    if (options_.leaving_out) site.cold = options_.leaving_out->cold_checks;
    return site;
  }

  // The atomic operation is done: who waits for it may have to hear of that, too.
  void EmitAfterAtomic(const Item& item) {
    if (!options_.after_atomic || !item.atomic || !item.check) return;
    const auto operands = item.in.memory();
    if (operands.size() != 1 || !IsSimple(operands[0]) || !operands[0].reads) return;
    AccessSite site = SiteOf(item, operands[0]);
    site.done = true;
    // Its address is still in CacheThread::access_address, so nobody may come in between.
    state_.unrecoverable = true;
    ToSlowStack();
    out_.Bytes({0x68});  // push $imm32
    out_.Imm32(AddressOf(cache_.NewSite(site)));
    out_.CallTo(cache_.slow_stub_);
    state_.unrecoverable = false;
    FromSlowStack();
  }

  // Between the checks of a block the flags may stay in rax, since taking them in and out costs as
  // much as a check does. Not where the item, as it is emitted, uses either.
  bool LetsFlagsBeInRax(const Item& item) const {
    return item.valid && !item.report && !item.atomic && !NeedsRewrite(item) &&
           LeavesFlagsAndRax(item.in);
  }
  void TakeFlagsFromRax(const Item& item) {
    if (!state_.flags_in_rax) return;
    if (item.valid && StatusFlagUse(item.in) == FlagUse::kOverwrites) {
      state_.flags_in_rax = false;
      Mark();
    }
    Restore(kRax);
  }

  void EmitFlagsBack() {
    out_.Bytes({0x04, 0x7f});  // add $0x7f, %al: overflow if al is 1
    out_.Bytes({0x9e});        // sahf
    state_.flags_in_rax = false;
    Mark();
  }

  static unsigned SignatureIndex(std::uint32_t size) {
    for (unsigned i = 0; i < 7; ++i) {
      if (size == 1u << i) return i;
    }
    return 7;
  }

  // Finds out from which items on a status flag may be read before all are overwritten: the least
  // such set, over the whole region, and of functions called by how they begin.
  void FindLiveFlags() {
    for (bool changed = true; changed;) {
      changed = false;
      for (auto at = items_.rbegin(); at != items_.rend(); ++at) {
        Item& item = at->second;
        if (item.flags_live || !MayReadFlags(item)) continue;
        item.flags_live = changed = true;
      }
    }
  }
  bool MayReadFlags(const Item& item) {
    if (!item.valid) return true;
    switch (item.in.branch) {
      case Branch::kJump:
      case Branch::kCall:
        return FlagsLiveAt(item.in.target);
      case Branch::kNone: {
        const FlagUse use = StatusFlagUse(item.in);
        return use == FlagUse::kMayRead || (use == FlagUse::kKeeps && FlagsLiveAt(item.next()));
      }
      default:
        return true;
    }
  }
  bool FlagsLiveAt(std::uint64_t rip) {
    if (const auto item = items_.find(rip); item != items_.end()) return item->second.flags_live;
    const auto known = flags_live_outside_.find(rip);
    if (known != flags_live_outside_.end()) return known->second;
    return flags_live_outside_[rip] = FlagsLiveOutside(rip);
  }
  // The same of code that is not of this region, which goes with it from now on.
  bool FlagsLiveOutside(std::uint64_t rip) {
    for (unsigned i = 0; i < kFlagSearch; ++i) {
      std::uint8_t bytes[kMaximumInstructionLength] = {};
      const std::size_t size = options_.read_code(rip, bytes, sizeof bytes);
      const auto in = Decode({bytes, size}, rip);
      if (!in) return true;
      outside_.emplace_back(rip, rip + in->length - 1);
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
  // Checks of all operands. Scratch registers may be left saved.
  void EmitChecks(const Item& item) {
    if (!item.check) return;
    const auto operands = item.in.memory();
    if (std::all_of(operands.begin(), operands.end(), IsSimple)) {
      for (const MemoryOperand& operand : operands) EmitSimpleCheck(item, operand);
      return;
    }
    RestoreAll();
    AccessSite site;
    site.rip = item.rip;
    site.atomic = item.atomic;
    site.locked = item.in.atomic;
    site.exchange = item.in.atomic && IsExchange(item.in);
    cache_.site_instructions_.push_back(std::make_unique<Instruction>(item.in));
    site.instruction = cache_.site_instructions_.back().get();
    if (IsString(item.in) && item.in.repeat == Repeat::kRep) {
      site.repeated = static_cast<std::uint8_t>(std::bit_width(operands[0].size));
      for (const MemoryOperand& operand : operands) {
        site.read |= operand.reads;
        site.write |= operand.writes;
      }
    }
    EmitSlowCall(cache_.NewSite(site),
                 NeedsVectors(item.in) ? cache_.vector_slow_stub_ : cache_.full_slow_stub_);
  }

  void EmitReport(const Item& item) {
    RestoreAll();
    AccessSite site;
    site.rip = item.rip;
    site.report = true;
    EmitSlowCall(cache_.NewSite(site), cache_.full_slow_stub_);
  }

  // --- the instructions themselves

  bool NeedsRewrite(const Item& item) const {
    if (IsRipRelative(item.in)) return true;
    if (!item.in.modrm_is_memory() || item.in.operand_count == 0) return false;
    return item.in.segment == Segment::kGs || (item.in.segment == Segment::kFs && item.instrument);
  }

  // The operand that ModRM says, for instructions that touch no memory too.
  MemoryOperand ModrmOperand(const Item& item) const {
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

  // The original bytes, with a gs prefix in place of segment prefixes.
  void EmitOriginal(const Item& item, bool gs, bool without_repeat = false) {
    if (gs) out_.Bytes({0x65});
    for (unsigned i = 0; i < item.in.length; ++i) {
      const std::uint8_t byte = item.bytes[i];
      if (i < item.in.opcode_offset) {
        const bool segment = byte == 0x64 || byte == 0x65 || byte == 0x26 || byte == 0x2e ||
                             byte == 0x36 || byte == 0x3e;
        if (segment && (gs || byte != 0x64)) continue;
        if (without_repeat && (byte == 0xf2 || byte == 0xf3)) continue;
        // A REX that another prefix follows is void, and must not come to stand before the opcode.
        const bool last = i + 1 == item.in.opcode_offset;
        if ((byte & 0xf0) == 0x40 && !last) continue;
      }
      out_.Bytes({byte});
    }
  }

  // The instruction with (base) as its operand; base other than rsp, rbp, r12, r13 or, without
  // displacement, as it is.
  void EmitWithBase(const Item& item, std::uint8_t base, bool gs) {
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

  void EmitItem(const Item& item) {
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
      return out_.MoveImm(
          in.reg(), item.next() + static_cast<std::uint64_t>(ModrmOperand(item).displacement));
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

  void EmitBranchItem(const Item& item) {
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

  void EmitSystemCall(const Item& item) {
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

  // rax = where the indirect branch goes.
  void EmitTarget(const Item& item) {
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

  void EmitReturnAddress(const Item& item, bool gs) {
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

  // The frame of a call whose return address lies at rsp - 8, before rsp moves.
  void EmitShadowPush(const Item& item) {
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

  // Before rsp moves, the return address being in rax, which is saved.
  void EmitShadowPop() {
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

  void EmitConditional(const Item& item) {
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

  // push, pop, pushf, popf, leave of instrumented items; false: none of them.
  bool EmitStackItem(const Item& item) {
    const Instruction& in = item.in;
    if (!item.instrument || in.map != kMapOneByte) return false;
    const std::uint8_t opcode = in.opcode;
    const auto reg = static_cast<std::uint8_t>((opcode & 7) | (in.rex & 1) << 3);
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

  // On the slow stack. Who single-steps itself is to be trapped after instructions of its own, not
  // after those of the copy.
  void EmitStepIfTrapFlag(const Item& item, std::uint8_t flags) {
    const Mapping before = state_;
    out_.Bytes({0x9c});
    state_.unrecoverable = true;
    Mark();
    if (flags >= 8) out_.Bytes({0x41});
    out_.Bytes({0xf7, static_cast<std::uint8_t>(0xc0 | (flags & 7))});  // test $0x100, flags
    out_.Imm32(0x100);
    const std::uint32_t to_step = out_.JumpIf(kConditionNotEqual);
    cold_.push_back([this, to_step, before, rip = item.rip] {
      out_.SetDisplacement(to_step, out_.here());
      state_ = before;
      state_.unrecoverable = true;
      Mark();
      out_.Bytes({0x9d});
      state_.unrecoverable = false;
      FromSlowStack();
      RestoreAll();
      EmitExit(ExitKind::kStep, rip);
    });
  }

  void EmitPopToMemory(const Item& item, std::uint8_t value, std::uint8_t address) {
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

  // The popped value is where it belongs, rsp is not yet.
  void Popped(const Item& item) {
    state_.rip = item.next();
    state_.rsp_behind = 8;
    Mark();
    out_.Lea(kRsp, kRsp, 8);
    state_.rsp_behind = 0;
    Mark();
  }

  // Of a string instruction that is repeated while it compares, or not at all: of one element.
  void EmitElementChecks(const Item& item) {
    if (!item.check) return;
    for (MemoryOperand element : item.in.memory()) {
      element.pattern = Pattern::kWhole;
      EmitSimpleCheck(item, element);
    }
    RestoreAll();
  }

  // ES cannot be overridden, so rdi is moved to the mirror and back.
  void EmitStringItem(const Item& item) {
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
  void MoveRdi(std::uint8_t scratch, std::uint64_t by, bool to_mirror) {
    Save(scratch);
    out_.MoveImm(scratch, by);
    out_.LeaSum(kRdi, kRdi, scratch);
    state_.rdi_is_mirror = to_mirror;
    Mark();
  }

  CodeCache& cache_;
  const TranslatorOptions& options_;
  Emitter out_;
  std::unique_ptr<Region> region_;
  std::map<std::uint64_t, Item> items_;
  std::map<std::uint64_t, std::uint64_t> labels_;
  std::vector<PendingLink> links_;
  std::vector<std::function<void()>> cold_;
  Mapping state_;
  std::set<std::uint64_t> leaders_;
  std::uint8_t kept_ = kNoRegister;   // the scratch register that loops keep saved
  std::set<std::uint64_t> in_loops_;  // leaders of blocks that do
  std::map<std::uint64_t, std::uint64_t> kept_labels_;
  std::vector<Checked> checked_;
  Group group_;
  std::map<std::uint64_t, bool> flags_live_outside_;
  // [first, last] byte of instructions of others that this region's code was chosen by.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> outside_;
  std::array<std::uint8_t, 6> scratch_ = {8, 9, 10, 11, 14, 15};
  std::uint64_t first_ = 0;
  std::uint16_t at_item_ = 0;  // registers that were saved when the item began
  unsigned stepped_ = 0;
};

CodeCache::CodeCache(TranslatorOptions options) : options_(std::move(options)) {
  if (options_.memory) {
    memory_ = *options_.memory;
  } else {
    memory_.code = AddressOf(MapLow(options_.code_size, PROT_READ | PROT_WRITE | PROT_EXEC));
    memory_.table = AddressOf(MapLow(CacheMemory::kTableSize, PROT_READ | PROT_WRITE));
    memory_.sites = AddressOf(MapLow(CacheMemory::kSitesSize, PROT_READ | PROT_WRITE));
    thread_ =
        new (MapLow(sizeof(CacheThread), PROT_READ | PROT_WRITE, alignof(CacheThread))) CacheThread;
    thread_->next_frame = AddressOf(thread_->frames);
    thread_->registers.xsave = thread_->xsave;
    memory_.thread = AddressOf(thread_);
  }
  EmitStubs();
  code_used_ = stubs_size_;
  auto* const pairs = reinterpret_cast<std::uint64_t*>(memory_.table);
  for (std::uint64_t i = 0; i < kTableEntries; ++i) pairs[2 * i] = kNoKey;
}

CodeCache::~CodeCache() {
  if (options_.memory) return;
  munmap(reinterpret_cast<void*>(memory_.code), options_.code_size);
  munmap(reinterpret_cast<void*>(memory_.table), CacheMemory::kTableSize);
  munmap(reinterpret_cast<void*>(memory_.sites), CacheMemory::kSitesSize);
  munmap(thread_, sizeof(CacheThread));
}

void CodeCache::EmitProbe(Emitter& out) const {
  const auto slot = [&](std::size_t offset) { return SlotAddress(offset); };
  const auto saved = [&](std::uint8_t reg) {
    return slot(offsetof(CacheThread, saved)) + 8u * reg;
  };
  out.Bytes({0x48, 0x8b, 0x0c, 0xd5});  // mov table(,%rdx,8), %rcx
  out.Imm32(memory_.table);
  out.LeaSum(kRcx, kRcx, kRax);
  out.Bytes({0xe3, 2, 0xeb, 0});  // jrcxz over the jump to the end
  const std::uint32_t skip = out.offset();
  out.Bytes({0x48, 0x8b, 0x04, 0xd5});  // mov table + 8(,%rdx,8), %rax
  out.Imm32(memory_.table + 8);
  out.StoreAbsolute(kRax, slot(offsetof(CacheThread, jump)));
  out.LoadAbsolute(kRax, saved(kRax));
  out.LoadAbsolute(kRcx, saved(kRcx));
  out.LoadAbsolute(kRdx, saved(kRdx));
  out.JumpThroughAbsolute(slot(offsetof(CacheThread, jump)));
  out.SetByte(skip - 1, static_cast<std::uint8_t>(out.offset() - skip));
}

// Stubs lie at the start of the code and stay.
void CodeCache::EmitStubs() {
  Emitter out(memory_.code);
  const auto slot = [&](std::size_t offset) { return SlotAddress(offset); };
  const auto saved = [&](std::uint8_t reg) {
    return slot(offsetof(CacheThread, saved)) + 8u * reg;
  };
  const auto gpr = [&](std::uint8_t reg) {
    return slot(offsetof(CacheThread, registers) + offsetof(RegisterFile, gpr)) + 8u * reg;
  };
  const std::uint64_t flags =
      slot(offsetof(CacheThread, registers) + offsetof(RegisterFile, rflags));
  const std::uint64_t stack_top = slot(offsetof(CacheThread, stack)) + CacheThread::kStackSize;
  const auto vector_state =
      [&](std::uint8_t extension) {            // xsave64 or xrstor64; changes rax, rdx and rcx
        out.MoveImm(kRax, kVectorComponents);  // x87, SSE, AVX, AVX-512
        out.MoveImm(kRdx, 0);
        out.Bytes({0x48, 0x0f, 0xae, static_cast<std::uint8_t>(0x04 | extension << 3), 0x25});
        out.Imm32(slot(offsetof(CacheThread, xsave)));
      };

  static constexpr std::uint8_t kCalleeSaved[] = {kRbp, kRbx, 12, 13, 14, 15};

  // Exit: all registers into the register file, then back to the caller of the entry.
  exit_stub_ = out.here();
  if (options_.memory) out.Bytes({0xe6, options_.exit_port, 0x0f, 0x0b});  // out %al, $port; ud2
  for (std::uint8_t reg = 0; reg < 16; ++reg) out.StoreAbsolute(reg, gpr(reg));
  out.MoveImm(kRsp, stack_top);
  out.Bytes({0x9c});  // pushfq
  out.PopAbsolute(flags);
  out.Bytes({0x68, 0x02, 0x02, 0, 0, 0x9d});  // push $0x202; popfq: neither trap nor direction flag
  if (options_.save_vector_state) vector_state(4);
  out.LoadAbsolute(kRsp, slot(offsetof(CacheThread, host_rsp)));
  for (std::size_t i = std::size(kCalleeSaved); i-- > 0;) out.Pop(kCalleeSaved[i]);
  out.Bytes({0xc3});

  leave_address_ = out.here();
  if (options_.memory) out.Bytes({0xe6, options_.exit_port});
  out.Bytes({0xc2, 8, 0});  // ret $8

  // Entry, a C function without arguments: jumps to CacheThread::jump.
  enter_stub_ = out.here();
  for (const std::uint8_t reg : kCalleeSaved) out.Push(reg);
  out.StoreAbsolute(kRsp, slot(offsetof(CacheThread, host_rsp)));
  if (options_.save_vector_state) vector_state(5);
  out.MoveImm(kRsp, stack_top);
  out.PushAbsolute(flags);
  out.Bytes({0x9d});  // popfq
  for (std::uint8_t reg = 0; reg < 16; ++reg) out.LoadAbsolute(reg, gpr(reg));
  out.JumpThroughAbsolute(slot(offsetof(CacheThread, jump)));

  // Slow paths: called on the slow stack with the site pushed before the return address.
  static constexpr std::uint8_t kCallerSaved[] = {kRax, kRcx, kRdx, kRsi, kRdi, 8, 9, 10, 11};
  const auto slow_path = [&](bool full, bool vector) {
    const std::uint64_t start = out.here();
    out.Bytes({0x9c});
    for (const std::uint8_t reg : kCallerSaved) out.Push(reg);
    // Ten words and two above: the stack is 16-aligned.
    if (full) {
      for (std::uint8_t reg = 0; reg < 16; ++reg) {
        if (reg != kRsp) out.StoreAbsolute(reg, gpr(reg));
      }
      out.LoadAbsolute(kRax, slot(offsetof(CacheThread, program_rsp)));
      out.StoreAbsolute(kRax, gpr(kRsp));
      out.WithBase(0x8b, kRax, kRsp, 8 * 9, false);
      out.StoreAbsolute(kRax, flags);
      for (const auto& [from, to] :
           {std::pair{offsetof(CacheThread, fs_base), offsetof(RegisterFile, fs_base)},
            std::pair{offsetof(CacheThread, gs_base), offsetof(RegisterFile, gs_base)}}) {
        out.LoadAbsolute(kRax, slot(from));
        out.StoreAbsolute(kRax, slot(offsetof(CacheThread, registers) + to));
      }
      out.WithBase(0x8b, kRax, kRsp, 8 * 11, false);
      out.WithBase(0x8b, kRax, kRax, offsetof(AccessSite, rip), false);
      out.StoreAbsolute(kRax, slot(offsetof(CacheThread, registers) + offsetof(RegisterFile, rip)));
    }
    out.Bytes({0xfc});
    if (vector || options_.save_vector_state) vector_state(4);
    out.WithBase(0x8b, kRdi, kRsp, 8 * 11, false);
    out.LoadAbsolute(kRsi, slot(offsetof(CacheThread, access_address)));
    out.MoveImm(kRdx, full ? slot(offsetof(CacheThread, registers)) : 0);
    out.MoveImm(kRax, reinterpret_cast<std::uint64_t>(options_.handler));
    out.Bytes({0xff, 0xd0});  // call *%rax
    if (options_.save_vector_state) vector_state(5);
    out.LoadAbsolute(kRcx, slot(offsetof(CacheThread, leave_requested)));
    const auto back = [&] {
      for (std::size_t i = std::size(kCallerSaved); i-- > 0;) out.Pop(kCallerSaved[i]);
      out.Bytes({0x9d});  // popfq
    };
    out.Bytes({0xe3, 0});  // jrcxz to the usual end
    const std::uint32_t skip = out.offset();
    back();
    out.JumpTo(leave_address_);
    out.SetByte(skip - 1, static_cast<std::uint8_t>(out.offset() - skip));
    back();
    out.Bytes({0xc2, 8, 0});  // ret $8
    return start;
  };
  slow_stub_ = slow_path(false, false);
  for (unsigned log2 = 0; log2 < std::size(shortcut_stubs_); ++log2) {
    for (const bool write : {false, true}) {
      const auto shortcut = options_.shortcut ? options_.shortcut(1u << log2, write)
                                              : std::span<const std::uint8_t>();
      shortcut_stubs_[log2][write] = slow_stub_;
      if (shortcut.empty()) continue;
      shortcut_stubs_[log2][write] = out.here();
      out.Bytes(shortcut);
      out.JumpTo(slow_stub_);
    }
  }
  full_slow_stub_ = slow_path(true, false);
  vector_slow_stub_ = slow_path(true, true);

  // The pairs after the first, then out.
  probe_stub_ = out.here();
  for (unsigned i = 1; i < kProbes; ++i) {
    out.Bytes({0x8d, 0x52, 2});  // lea 2(%rdx), %edx
    EmitProbe(out);
  }
  for (const std::uint8_t reg : {kRax, kRcx, kRdx}) out.LoadAbsolute(reg, saved(reg));
  out.StoreAbsoluteImm(slot(offsetof(CacheThread, exit_kind)),
                       static_cast<std::uint32_t>(ExitKind::kLookup));
  out.JumpTo(exit_stub_);

  std::memcpy(reinterpret_cast<void*>(memory_.code), out.bytes().data(), out.bytes().size());
  stubs_size_ = (out.bytes().size() + 63) & ~std::uint64_t{63};
}

const AccessSite* CodeCache::NewSite(const AccessSite& site) {
  if (sites_used_ + sizeof(AccessSite) > CacheMemory::kSitesSize) throw std::bad_alloc();
  auto* const placed = new (reinterpret_cast<void*>(memory_.sites + sites_used_)) AccessSite(site);
  sites_used_ += sizeof(AccessSite);
  return placed;
}

std::uint64_t CodeCache::Find(std::uint64_t rip) const {
  const auto found = entries_.find(rip);
  return found == entries_.end() ? 0 : found->second;
}

bool CodeCache::full() const {
  // The largest instrumented instructions take some 250 bytes, with two sites and an exit.
  const std::uint64_t instructions = options_.max_instructions;
  return code_used_ + instructions * 512 > options_.code_size ||
         sites_used_ + instructions * 3 * sizeof(AccessSite) > CacheMemory::kSitesSize ||
         (options_.max_blocks != 0 && blocks_ >= options_.max_blocks) || unplaced_ > kMostUnplaced;
}

std::uint64_t CodeCache::Translate(std::uint64_t rip) {
  if (const std::uint64_t known = Find(rip); known != 0) return known;
  if (full()) {
    if (options_.memory) return 0;
    Flush();
  }
  RegionBuilder builder(*this, memory_.code + code_used_);
  if (!builder.Discover(rip)) return 0;
  builder.Emit();
  const auto& bytes = builder.out().bytes();
  std::memcpy(reinterpret_cast<void*>(memory_.code + code_used_), bytes.data(), bytes.size());
  code_used_ += (bytes.size() + 63) & ~std::uint64_t{63};
  statistics_.code_bytes = code_used_;
  builder.Publish();
  return Find(rip);
}

void CodeCache::StoreDisplacement(std::uint64_t at, std::uint64_t target) {
  const auto value = static_cast<std::uint32_t>(target - (at + 4));
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(at), value, __ATOMIC_RELEASE);
}

std::uint64_t CodeCache::LinkTarget(std::uint64_t link) const { return links_.at(link).target; }

std::uint64_t CodeCache::FollowLink(std::uint64_t number) {
  const std::uint64_t target = links_.at(number).target;
  const std::uint64_t flushes = statistics_.flushes;
  const std::uint64_t address = Translate(target);
  if (address == 0 || flushes != statistics_.flushes) return address;
  Link& link = links_[number];
  if (link.region != nullptr && !link.kept) {
    StoreDisplacement(link.displacement, address);
    link.linked = true;
  }
  return address;
}

std::uint64_t CodeCache::FollowLookup(std::uint64_t rip) {
  const std::uint64_t address = Translate(rip);
  if (address != 0) SetTable(rip, address);
  return address;
}

// Pairs are only ever filled once between flushes, so that no thread sees a key with another key's
// address.
void CodeCache::SetTable(std::uint64_t rip, std::uint64_t address) {
  auto* pair = reinterpret_cast<std::uint64_t*>(memory_.table) + 2 * (rip % kTablePairs);
  for (unsigned i = 0; i < kProbes; ++i, pair += 2) {
    if (pair[0] == ~rip + 1) return;  // another thread has missed it, too
    if (pair[1] != 0) continue;
    placed_.push_back(static_cast<std::uint32_t>(rip % kTablePairs + i));
    __atomic_store_n(&pair[1], address, __ATOMIC_RELEASE);
    __atomic_store_n(&pair[0], ~rip + 1, __ATOMIC_RELEASE);
    return;
  }
  ++unplaced_;
}

// A key that no address with this index has.
void CodeCache::ClearTable(std::uint64_t rip) {
  auto* pair = reinterpret_cast<std::uint64_t*>(memory_.table) + 2 * (rip % kTablePairs);
  for (unsigned i = 0; i < kProbes; ++i, pair += 2) {
    if (pair[0] == ~rip + 1) __atomic_store_n(&pair[0], kNoKey, __ATOMIC_RELEASE);
  }
}

void CodeCache::Remove(Region& region) {
  region.removed = true;
  for (const std::uint64_t number : region.links) {
    Link& link = links_[number];
    StoreDisplacement(link.displacement, link.stub);
    link.linked = false;
    link.region = nullptr;
  }
  for (Link& link : links_) {
    if (link.region == nullptr || !link.linked) continue;
    const std::uint64_t at = link.displacement;
    const auto target =
        at + 4 + static_cast<std::uint64_t>(std::int64_t{*reinterpret_cast<std::int32_t*>(at)});
    if (target < region.begin || target >= region.end) continue;
    StoreDisplacement(at, link.stub);
    link.linked = false;
  }
  for (const auto& [first, last] : region.instructions) {
    const auto entry = entries_.find(first);
    if (entry == entries_.end() || entry->second < region.begin || entry->second >= region.end)
      continue;
    entries_.erase(entry);
    ClearTable(first);
  }
}

void CodeCache::Invalidate(std::uint64_t start, std::uint64_t end) {
  for (const auto& [begin, region] : regions_) {
    if (region->removed) continue;
    const bool inside =
        std::any_of(region->instructions.begin(), region->instructions.end(),
                    [&](const auto& range) { return range.first < end && range.second >= start; });
    if (inside) Remove(*region);
  }
}

void CodeCache::RemoveAll() {
  for (Link& link : links_) {
    if (link.region == nullptr) continue;
    StoreDisplacement(link.displacement, link.stub);
    link.linked = false;
    link.region = nullptr;
  }
  for (const auto& [begin, region] : regions_) region->removed = true;
  for (const auto& [rip, address] : entries_) ClearTable(rip);
  entries_.clear();
}

void CodeCache::Flush() {
  entries_.clear();
  regions_.clear();
  links_.clear();
  site_instructions_.clear();
  sites_used_ = blocks_ = unplaced_ = 0;
  code_used_ = stubs_size_;
  auto* const pairs = reinterpret_cast<std::uint64_t*>(memory_.table);
  for (const std::uint32_t number : placed_) {
    pairs[2 * number] = kNoKey;
    pairs[2 * number + 1] = 0;
  }
  placed_.clear();
  ++statistics_.flushes;
}

std::optional<RegisterFile> CodeCache::Recover(const RegisterFile& registers,
                                               const CacheThread& thread) const {
  auto found = regions_.upper_bound(registers.rip);
  if (found == regions_.begin()) return std::nullopt;
  const Region& region = *std::prev(found)->second;
  if (registers.rip >= region.end) return std::nullopt;
  const auto offset = static_cast<std::uint32_t>(registers.rip - region.begin);
  const auto after = std::upper_bound(
      region.mappings.begin(), region.mappings.end(), offset,
      [](std::uint32_t value, const Mapping& mapping) { return value < mapping.offset; });
  if (after == region.mappings.begin()) return std::nullopt;
  const Mapping& mapping = *std::prev(after);
  if (mapping.unrecoverable) return std::nullopt;
  RegisterFile result = registers;
  result.rip = mapping.rip;
  result.gpr[kRbp] = registers.gpr[mapping.rbp_in];
  if (mapping.flags_in_rax) {
    constexpr std::uint64_t kLahfFlags = 0xd5;
    constexpr std::uint64_t kOverflow = 1u << 11;
    const std::uint64_t rax = registers.gpr[kRax];
    result.rflags = (result.rflags & ~(kLahfFlags | kOverflow)) | (rax >> 8 & kLahfFlags) |
                    ((rax & 1) != 0 ? kOverflow : 0);
  }
  if (mapping.rip_is_in_rax) result.rip = registers.gpr[kRax];
  if (mapping.rip_is_target) result.rip = thread.target;
  for (unsigned reg = 0; reg < 16; ++reg) {
    if ((mapping.saved >> reg & 1) != 0) result.gpr[reg] = thread.saved[reg];
  }
  if (mapping.rsp_saved) result.gpr[kRsp] = thread.program_rsp;
  result.gpr[kRsp] += mapping.rsp_behind;
  if (mapping.rdi_is_mirror) result.gpr[kRdi] -= options_.mirror_offset;
  if (mapping.rcx_is_cache_address) result.gpr[kRcx] = mapping.rip;
  if (mapping.element_done) --result.gpr[kRcx];
  if (mapping.element_done || mapping.compared) {
    constexpr std::uint64_t kZeroFlag = 1u << 6;
    const bool equal = (result.rflags & kZeroFlag) != 0;
    if (result.gpr[kRcx] == 0 || equal == mapping.stops_when_equal) result.rip += mapping.length;
  }
  return result;
}

CodeCache::RunResult CodeCache::Run(RegisterFile& registers, std::uint64_t stop) {
  std::uint64_t address = thread_ == nullptr ? 0 : Translate(registers.rip);
  if (address == 0) return RunResult::kNoCode;
  thread_->fs_base = registers.fs_base;
  thread_->gs_base = registers.gs_base;
  std::memcpy(thread_->registers.gpr, registers.gpr, sizeof registers.gpr);
  thread_->registers.rflags = registers.rflags;
  const NativeFloatControl host_control;
  if (options_.save_vector_state && registers.xsave != nullptr) {
    std::memmove(thread_->xsave, registers.xsave, sizeof thread_->xsave);
  } else if (options_.save_vector_state) {
    asm volatile("xsave64 %0" : "+m"(thread_->xsave) : "a"(kVectorComponents), "d"(0) : "memory");
  }
  for (;;) {
    thread_->jump = address;
    reinterpret_cast<void (*)()>(enter_stub_)();
    ++statistics_.exits;
    std::memcpy(registers.gpr, thread_->registers.gpr, sizeof registers.gpr);
    registers.rflags = thread_->registers.rflags;
    if (options_.save_vector_state) registers.xsave = thread_->xsave;
    switch (static_cast<ExitKind>(thread_->exit_kind)) {
      case ExitKind::kLink:
        registers.rip = LinkTarget(thread_->exit_argument);
        if (registers.rip == stop) return RunResult::kStopped;
        address = FollowLink(thread_->exit_argument);
        break;
      case ExitKind::kLookup:
        registers.rip = thread_->target;
        if (registers.rip == stop) return RunResult::kStopped;
        address = FollowLookup(registers.rip);
        break;
      default:
        registers.rip = thread_->exit_argument;
        return RunResult::kMustStep;
    }
    if (address == 0) return RunResult::kNoCode;
  }
}

}  // namespace trapline
