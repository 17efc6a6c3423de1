#include "tools/bare_access.h"

#include <bit>
#include <utility>

#include "tools/loop_values.h"

namespace trapline {
namespace {

bool MayInlineTbb(BareCode code) {
  return code == BareCode::kMayInlineTbb || code == BareCode::kTbb || code == BareCode::kParallelOr;
}

// Whether it may be a load or a store of a flag that is only ever set to a number, and is relaxed:
// that by which oneTBB's loops tell whether a half of their range was stolen, m_child_stolen of
// tree_node, whose place is part of the library's binary interface; or the one that says in
// libstdc++'s parallel algorithms that what they look for was found.
bool MayBeTbbFlag(const Instruction& instruction, BareCode code) {
  constexpr std::int64_t kPlaceOfStolen = 0x18;
  const MemoryOperand& operand = instruction.operands[0];
  const bool may_be_of_code = code == BareCode::kParallelOr ||
                              (code == BareCode::kTbb && operand.displacement == kPlaceOfStolen);
  return may_be_of_code && operand.size == 1 && operand.index == kNoRegister &&
         operand.base != kNoRegister && operand.base != kRip && operand.base != kRsp &&
         operand.segment == Segment::kNone &&
         (!operand.writes || (!operand.reads && instruction.immediate_size == 1));
}

}  // namespace

BareAccess BareAccessOf(const Instruction& instruction, std::uint64_t ip, BareCode code,
                        WaitingLoops& loops) {
  const MemoryOperand& operand = instruction.operands[0];
  const bool updates = operand.reads && operand.writes;
  if (code == BareCode::kNo || (updates && !MayInlineTbb(code))) return {};
  // Plain data is loaded so far more often than atomics are (docs/detection.md).
  if (code == BareCode::kNoLine && !operand.writes) return {};
  return {.code = code,
          .writes = operand.writes,
          .updates = updates,
          .may_be_tbb_flag = MayBeTbbFlag(instruction, code),
          .waits = !operand.writes && loops.Repeat(ip),
          .size = operand.size};
}

bool LoadsForExchange(std::span<const unsigned char> code, std::uint64_t ip) {
  constexpr unsigned kMostInstructions = 64;
  Step step;
  step.ip = ip;
  const auto take = [&] {
    const auto rest = code.subspan(step.ip - ip);
    const auto next = Decode(rest, step.ip);
    if (next) step.Take(*next, rest);
    return next.has_value();
  };
  if (!take() || !MayBeAtomic(step.instruction) || step.instruction.operands[0].writes)
    return false;
  LoopValues values = LoopValues::AtFirst();
  const MemoryOperand loaded = step.instruction.operands[0];
  const Location location = values.AddressOf(step, loaded);
  const Value value = values.Execute(step);
  while (++step.number < kMostInstructions) {
    step.ip += step.instruction.length;
    if (step.ip - ip >= code.size() || !take() || step.instruction.branch != Branch::kNone)
      return false;
    const Instruction& in = step.instruction;
    if (in.atomic && in.map == kMap0F && (in.opcode & 0xfe) == 0xb0) {  // cmpxchg
      const MemoryOperand& changed = in.operands[0];
      // It changes what was loaded, or expects to find that.
      return changed.size == loaded.size && changed.segment == loaded.segment &&
             (values.AddressOf(step, changed) == location ||
              (value.IsExact() && values.Of(kRax) == value));
    }
    values.Execute(step);
  }
  return false;
}

Judgement JudgeMeeting(const Access& first, const BareAccess& first_bare, const Access& second,
                       const BareAccess& second_bare) {
  constexpr std::uint64_t kLargest = 8;  // bytes; larger ones are atomic by locked instructions
  if (first.address != second.address || first.size != second.size || first.size > kLargest ||
      !std::has_single_bit(first.size) || first.address % first.size != 0) {
    return {};
  }
  bool meets_atomic = false, is_rust = true, is_tbb_flag = true, may_store = true, orders = true;
  bool is_waited_for = false, is_polled = false, is_merged = false, meets_presumed = false;
  for (const auto& [access, bare] :
       {std::pair(&first, &first_bare), std::pair(&second, &second_bare)}) {
    is_waited_for = is_waited_for || (bare->waits && !IsWrite(access->kind));
    is_polled = is_polled || (bare->waits && access->kind == EventKind::kAtomicRead);
    if (IsAtomic(access->kind)) {
      meets_atomic = true;
      meets_presumed = meets_presumed || (bare->writes && !bare->updates && IsWrite(access->kind));
      continue;
    }
    // What the runtime or the system does for its caller is no instruction of the caller's.
    if (bare->code == BareCode::kNo || bare->size != access->size ||
        bare->writes != IsWrite(access->kind)) {
      return {};
    }
    is_rust = is_rust && bare->code == BareCode::kRust;
    // Elsewhere what stores plainly to such a word is a mistake as often as not.
    is_merged = bare->code == BareCode::kNoLine;
    may_store = may_store && (!bare->writes || MayInlineTbb(bare->code) || is_merged);
    orders = orders && !bare->updates;
    is_tbb_flag = is_tbb_flag && bare->may_be_tbb_flag;
  }
  if (is_rust) return {Meeting::kMutualOrder, Presumption::kRust};
  if (is_waited_for && orders)
    return {is_polled ? Meeting::kPolled : Meeting::kOrder, Presumption::kWaitedFor};
  if (meets_atomic && may_store) {
    if (!orders) return {Meeting::kNoOrder, Presumption::kTbbRelaxed};
    const Presumption met = meets_presumed ? Presumption::kWaitedFor : Presumption::kMetAtomic;
    return {Meeting::kOrder, is_merged ? Presumption::kMergedStore : met};
  }
  if (is_tbb_flag) return {Meeting::kNoOrder, Presumption::kTbbRelaxed};
  return {};
}

}  // namespace trapline
