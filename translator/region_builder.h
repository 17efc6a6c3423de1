// Copies one region of the program's code for the cache, with its accesses checked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "translator/address_map.h"
#include "translator/code_cache.h"
#include "translator/constant_registers.h"
#include "translator/emitter.h"
#include "translator/instruction.h"
#include "translator/register_use.h"

namespace trapline {

inline constexpr std::uint8_t kConditionEqual = 4;
inline constexpr std::uint8_t kConditionNotEqual = 5;

inline std::uint64_t AddressOf(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

// None for kNoRegister.
constexpr std::uint32_t Bit(std::uint8_t reg) { return reg < 16 ? 1u << reg : 0; }

inline bool IsString(const Instruction& in) {
  return in.operand_count != 0 && in.operands[0].pattern == Pattern::kRepeated;
}

// Everything it makes is added to the cache at the end, so that nothing is left of a failure. Not
// thread-safe; for one region after the other, in the same memory.
class RegionBuilder {
 public:
  explicit RegionBuilder(CodeCache& cache)
      : cache_(cache), options_(cache.options_), out_(0), tables_(options_.table_pointers) {}

  // Begins another region, at this cache address.
  void Restart(std::uint64_t address);
  // Reads the program's code from `rip` on; false: there is none.
  bool Discover(std::uint64_t rip);
  // Copies it.
  void Emit();

  const Emitter& out() const { return out_; }

  // Adds the region to the cache; its bytes are in place.
  void Publish();

 private:
  struct Item {
    std::uint64_t rip = 0;
    bool valid = false;       // false: must be stepped
    bool instrument = false;  // goes through the mirror
    bool check = false;
    bool atomic = false;              // told of before and after
    bool only_reads = false;          // OnlyReadsMemory: a load that is known to be atomic
    bool report = false;              // TranslatorOptions::report_at
    bool flags_live = false;          // from here on
    bool leader = false;              // something other than its predecessor may go to it
    std::uint8_t kept = kNoRegister;  // of a leader: by FindLoops
    bool may_store_tables = false;    // pointers to those of tables_
    // Of `in`, since they are asked for often.
    FlagUse flag_use = FlagUse::kMayRead;
    std::uint16_t named = 0;
    std::uint16_t written = 0;
    // Cache addresses to which others may come, with all registers in their places and with `kept`
    // saved; 0: there is none.
    std::uint64_t label = 0;
    std::uint64_t kept_label = 0;
    Instruction in;
    std::uint8_t bytes[kMaximumInstructionLength] = {};

    std::uint64_t next() const { return rip + in.length; }
    bool jumps() const {
      return valid && (in.branch == Branch::kJump || in.branch == Branch::kConditional);
    }
  };
  using Region = CodeCache::Region;
  using Mapping = CodeCache::Mapping;

  struct PendingLink {
    std::uint32_t displacement;
    std::uint64_t target;
    std::uint8_t kept;  // it is taken with this register saved, KeptAt(target)
    std::uint64_t stub = 0;
  };

  // --- the program's instructions

  // Adds the one at `rip`; null: there is none to the cache.
  const Item* AddItem(std::uint64_t rip);
  void SortItems();
  // Once they are sorted; null: it is not of this region.
  Item* FindItem(std::uint64_t rip) {
    const std::uint32_t number = numbers_.Find(rip);
    return number != 0 ? &items_[number - 1] : nullptr;
  }
  const Item* FindItem(std::uint64_t rip) const {
    return const_cast<RegionBuilder*>(this)->FindItem(rip);
  }
  const Item* end() const { return items_.data() + items_.size(); }

  // --- what the program's registers are, at every byte

  // Code that is reached with all registers in their places but for `kept`, which it restores.
  void Begin(std::uint64_t rip, std::uint8_t kept = kNoRegister);
  void Mark();

  // --- thread page

  std::uint64_t Slot(std::size_t offset) const { return cache_.SlotAddress(offset); }
  std::uint64_t Saved(std::uint8_t reg) const {
    return Slot(offsetof(CacheThread, saved)) + 8u * reg;
  }
  std::uint64_t StackTop() const {
    return Slot(offsetof(CacheThread, stack)) + CacheThread::kStackSize;
  }

  void Save(std::uint8_t reg);
  void Restore(std::uint8_t reg);
  void RestoreThose(std::uint32_t registers);
  void RestoreAll(std::uint8_t except = kNoRegister) { RestoreThose(~Bit(except)); }

  void RestoreLow(std::uint8_t except = kNoRegister) { RestoreThose(0xff & ~Bit(except)); }
  // All but rax while the flags are there.
  void RestoreNamed(const Item& item);

  void ToSlowStack();
  void FromSlowStack();

  // --- blocks

  void FindLeaders();

  // Finds stores of pointers to tables of virtual functions: what they store may be one that the
  // code names, near by.
  void FindTablePointerStores();

  // In the blocks of a loop one scratch register is saved from end to end, and branches between
  // them leave it so: saved and restored in each block it would go through memory in every round.
  // Where the loop's instructions name them all, the loops within it have one each, if theirs do
  // not. None where nothing is checked.
  void FindLoops();
  // The register that is kept in the block that begins there.
  std::uint8_t KeptAt(std::uint64_t rip) const;
  bool KeptIsSaved() const { return kept_ != kNoRegister && (state_.saved & Bit(kept_)) != 0; }

  // A block of a loop has two labels: where others come in, with all registers in their places, and
  // behind that, where kept_ has been saved.
  void BeginBlock(Item& item);

  // The scratch registers of a block, those first that its instructions do not name.
  void ChooseScratch(const Item& first);

  // Within a block an access that was checked is not checked again: nothing that ends the thread's
  // epoch is in between.
  struct Checked {
    MemoryOperand operand;
    bool write;
    const AccessSite* site;
  };
  // By which the operand has been checked in this block; null: it has not.
  const AccessSite* AlreadyChecked(const MemoryOperand& operand) const;
  void ForgetChecks(const Item& item);

  // --- leaving

  void EmitExit(ExitKind kind, std::uint64_t argument);

  // With all registers in their places but for kept_, if that is saved.
  void EmitBranch(std::uint64_t target);
  void EmitBranchIf(std::uint8_t condition, std::uint64_t target);

  // The target is in rax, which is saved.
  void EmitLookup();

  // --- operands

  // Scratch registers that the instruction does not name: one that is saved already if possible.
  std::uint8_t Scratch(const Item& item, unsigned number) const;

  // to = linear address of the operand, all registers being the program's but for saved ones it
  // does not name.
  void EmitAddress(const Item& item, const MemoryOperand& operand, std::uint8_t to,
                   std::uint8_t other);

  // --- checks (region_checks.cpp)

  void EmitSlowCall(const AccessSite* site, std::uint64_t stub);

  void EmitSimpleCheck(const Item& item, const MemoryOperand& operand);

  // A base register alone is the address.
  static bool IsBaseAlone(const MemoryOperand& operand) {
    return MayBeInGroup(operand) && operand.displacement == 0;
  }
  // The register that holds the operand's address, its base or a scratch register.
  std::uint8_t EmitAddressToKeep(const Item& item, const MemoryOperand& operand);

  // Where flags are live, they are in rax from here on.
  void KeepFlags(const Item& item);

  // to = the address in `address`, which is in its slot if that is rax and the flags are there.
  void CopyAddress(std::uint8_t to, std::uint8_t address);

  // Of a store of pointers to tables of virtual functions: it counts as a load where they are there
  // already.
  void EmitTablePointerCheck(const Item& item);

  // Every access is looked for in the filter; out of line is what becomes of those not found.
  void EmitFilterCheck(const Item& item, const MemoryOperand& operand, const MemoryOperand& seen,
                       const AccessSite* placed);

  // Most accesses of hot code are left out: that is asked first, with one scratch register, and all
  // else, the address in full included, is out of line.
  void EmitSectorCheck(const Item& item, const MemoryOperand& operand, const MemoryOperand& seen,
                       const AccessSite* placed);

  // --- out of line: emitted behind all blocks

  // A block of a loop, for who comes from elsewhere.
  struct LoopEntry {
    Item* item;
  };
  // A conditional branch out of a loop.
  struct LoopExit {
    std::uint32_t jump;
    std::uint64_t target;
    std::uint8_t kept;
  };
  // An access that is not in the filter.
  struct SlowAccess {
    const Item* item;
    std::uint32_t jump;
    Mapping at_check;
    std::uint64_t back;
    std::uint8_t address, other;
    const AccessSite* placed;
  };
  // An access that is not left out.
  struct Telling {
    const Item* item;
    MemoryOperand operand, seen;
    const AccessSite* placed;
    bool computes = false;  // its address, into `address`; else that holds it
    std::uint8_t address = kNoRegister;
    std::uint8_t cell = kNoRegister;  // a scratch register
    bool by_area = false;             // only LeavingOut::area_uses was asked
    // The jumps that lead to it; 0: there is no second one.
    std::uint32_t jump = 0, second_jump = 0;
    Mapping at_check{};
    std::uint64_t back = 0;
  };
  // The program has set the trap flag.
  struct TrapFlagStep {
    std::uint32_t jump;
    Mapping before;
    std::uint64_t rip;
  };
  // A store that changes nothing, of what may be pointers to tables of virtual functions.
  struct StoreOfSame {
    const Item* item;
    std::uint32_t jump;
    Mapping at_check;
    std::uint8_t address, word;  // a scratch register each; rcx is one, too
    std::uint64_t other;         // where it goes on if they are none
    std::uint64_t back;          // and when it has been told of
  };
  // Where the access is about to be told of; to `back` if it is none.
  void EmitUnlessMoved(const Item& item, std::uint64_t back);
  void EmitOutOfLine(const LoopEntry& entry);
  void EmitOutOfLine(const LoopExit& exit);
  void EmitOutOfLine(const SlowAccess& access);
  // It is looked for in the filter and, if it is not there, told.
  void EmitOutOfLine(const Telling& telling);
  void EmitOutOfLine(const TrapFlagStep& step);
  void EmitOutOfLine(const StoreOfSame& store);
  // What `telling` jumps to from here, and goes on at.
  void TellOutOfLine(Telling telling);
  // Asks for the sectors themselves: goes back, with the state as it was at the check, if they are
  // left out, else on. `telling.cell` has the address, and keeps it.
  void EmitSectorCheckAgain(const Telling& telling);
  // Restores what was saved after the check, of the registers that are used to tell.
  void RestoreSinceCheck(const Telling& telling);
  // What the slow path is told; `other` is free. Changes no flags.
  void EmitArgument(std::uint8_t address, std::uint8_t other);

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
  bool InGroup(const MemoryOperand& operand) const;
  // Begins a group with this operand, unless that does not pay.
  bool EmitGroup(const Item& item, const MemoryOperand& operand);
  Group FindGroup(const Item& first, std::uint8_t base) const;
  // A number of 4, 1 or 0 bytes in the instruction.
  static std::int64_t SignedAt(const Item& item, unsigned offset, unsigned size);
  // By how much the instruction changes the register; nothing: nobody knows.
  static std::optional<std::int64_t> ChangeOf(const Item& item, std::uint8_t reg);
  // Behind the instruction.
  void MoveGroup(const Item& item);

  // Compares the filter's cell of an access at `address`, which `other` is a copy of, with what it
  // holds if the access is to be skipped.
  void EmitFilter(const MemoryOperand& seen, std::uint8_t address, std::uint8_t other);

  // reg: an address, then what the thread need not tell of its sector.
  void EmitRights(std::uint8_t reg);
  // Likewise of its area, if there are such.
  void EmitAreaRights(std::uint8_t reg);
  void EmitRights(std::uint8_t reg, std::uint64_t uses, std::uint8_t bits);
  // Tests whether the site leaves out what it accesses, by its rights; not zero: yes.
  void EmitTest(const AccessSite& site, std::uint8_t rights);

  // Whether the agent finds out by the registers what the instruction touches, and tells of that as
  // of other accesses; else the monitor does.
  static bool IsToldByElements(const Item& item);
  // In the cache, with what the agent needs for that.
  const AccessSite* Place(const Item& item, const AccessSite& site);
  ElementSites ElementSitesOf(const Item& item, const AccessSite& all) const;
  AccessSite SiteOf(const Item& item, const MemoryOperand& operand) const;
  // Of all that the instruction touches, which its registers tell.
  AccessSite SiteByRegisters(const Item& item);

  // The atomic operation is done: who waits for it may have to hear of that, too.
  void EmitAfterAtomic(const Item& item);

  // Between the checks of a block the flags may stay in rax, since taking them in and out costs as
  // much as a check does. Not where the item, as it is emitted, uses either.
  bool LetsFlagsBeInRax(const Item& item) const {
    return item.valid && !item.report && !item.atomic && !NeedsRewrite(item) &&
           LeavesFlagsAndRax(item.in);
  }
  void TakeFlagsFromRax(const Item& item);

  void EmitFlagsBack();

  // --- flags that are live (region_checks.cpp)

  // Finds out from which items on a status flag may be read before all are overwritten: the least
  // such set, over the whole region, and of functions called by how they begin.
  void FindLiveFlags();
  bool MayReadFlags(const Item& item);
  bool FlagsLiveAt(std::uint64_t rip);
  bool FlagsLiveAfter(const Item& item);
  // The same of code that is not of this region, which goes with it from now on.
  bool FlagsLiveOutside(std::uint64_t rip);

  // Checks of all operands. Scratch registers may be left saved.
  void EmitChecks(const Item& item);

  void EmitReport(const Item& item);

  // --- the instructions themselves (region_instructions.cpp)

  bool NeedsRewrite(const Item& item) const;

  // The operand that ModRM says, for instructions that touch no memory too.
  MemoryOperand ModrmOperand(const Item& item) const;

  // The original bytes, with a gs prefix in place of segment prefixes.
  void EmitOriginal(const Item& item, bool gs, bool without_repeat = false);

  // The instruction with (base) as its operand; base other than rsp, rbp, r12, r13 or, without
  // displacement, as it is.
  void EmitWithBase(const Item& item, std::uint8_t base, bool gs);

  void EmitItem(const Item& item);

  void EmitBranchItem(const Item& item);

  void EmitSystemCall(const Item& item);

  // rax = where the indirect branch goes.
  void EmitTarget(const Item& item);

  void EmitReturnAddress(const Item& item, bool gs);

  // The frame of a call whose return address lies at rsp - 8, before rsp moves.
  void EmitShadowPush(const Item& item);

  // Before rsp moves, the return address being in rax, which is saved.
  void EmitShadowPop();

  void EmitConditional(const Item& item);

  // push, pop, pushf, popf, leave of instrumented items; false: none of them.
  bool EmitStackItem(const Item& item);

  // On the slow stack. Who single-steps itself is to be trapped after instructions of its own, not
  // after those of the copy.
  void EmitStepIfTrapFlag(const Item& item, std::uint8_t flags);

  void EmitPopToMemory(const Item& item, std::uint8_t value, std::uint8_t address);

  // The popped value is where it belongs, rsp is not yet.
  void Popped(const Item& item);

  // Of a string instruction that is repeated while it compares, or not at all: of one element.
  void EmitElementChecks(const Item& item);

  // ES cannot be overridden, so rdi is moved to the mirror and back.
  void EmitStringItem(const Item& item);
  void MoveRdi(std::uint8_t scratch, std::uint64_t by, bool to_mirror);

  static constexpr std::array<std::uint8_t, 6> kScratchRegisters = {8, 9, 10, 11, 14, 15};
  static constexpr std::uint32_t kScratchSet =
      Bit(8) | Bit(9) | Bit(10) | Bit(11) | Bit(14) | Bit(15);

  CodeCache& cache_;
  const TranslatorOptions& options_;
  Emitter out_;
  std::unique_ptr<Region> region_;
  std::vector<Item> items_;       // by address
  std::vector<Item> discovered_;  // the same as they were found
  AddressMap numbers_;            // 1 + those of items
  std::vector<PendingLink> links_;
  NamedTables tables_;
  // Of FindTablePointerStores, whose memory is used again.
  std::vector<ConstantWords> constants_;
  std::vector<std::pair<Item*, ConstantWords>> stores_;
  std::vector<std::variant<LoopEntry, LoopExit, SlowAccess, Telling, TrapFlagStep, StoreOfSame>>
      out_of_line_;
  std::vector<Mapping> mappings_;
  Mapping state_;
  std::uint8_t kept_ = kNoRegister;  // KeptAt the block that is being emitted
  std::vector<Checked> checked_;
  Group group_;
  std::unordered_map<std::uint64_t, bool> flags_live_outside_;
  std::vector<CodeCache::CodeRange> made_from_;  // its items, and code outside that was looked at
  std::array<std::uint8_t, 6> scratch_ = kScratchRegisters;
  std::uint64_t first_ = 0;
  std::uint16_t at_item_ = 0;  // registers that were saved when the item began
  unsigned stepped_ = 0;
};

}  // namespace trapline
