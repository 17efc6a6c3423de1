#include "symbols/frame_rules.h"

#include <dwarf.h>

#include <cstddef>

namespace trapline {
namespace {

constexpr std::size_t kMaxStack = 64;
constexpr int kMaxSteps = 1000;  // of an expression with branches

// A stack machine for DWARF expressions (DWARF 5 section 2.5), as far as call frame information
// uses them: no calls, no pieces, no types.
class Evaluator {
 public:
  Evaluator(const RegisterFile& registers, const MemoryReader& memory, std::uint64_t cfa)
      : registers_(registers), memory_(memory), cfa_(cfa) {}

  // The value on top at the end. `is_value`: it is the object's value, else its address.
  bool Run(const std::vector<Dwarf_Op>& operations, std::uint64_t& result, bool& is_value) {
    is_value = false;
    std::size_t at = 0;
    for (int steps = 0; at < operations.size(); ++steps) {
      if (steps == kMaxSteps) return false;
      const Dwarf_Op& operation = operations[at++];
      const unsigned atom = operation.atom;
      if (atom == DW_OP_stack_value || (atom >= DW_OP_reg0 && atom <= DW_OP_reg16) ||
          atom == DW_OP_regx) {
        is_value = true;
        if (atom == DW_OP_stack_value) continue;
        if (!PushRegister(atom == DW_OP_regx ? operation.number : atom - DW_OP_reg0, 0))
          return false;
      } else if (atom == DW_OP_skip || atom == DW_OP_bra) {
        std::uint64_t condition = 1;
        if (atom == DW_OP_bra && !Pop(condition)) return false;
        if (condition != 0 && !Jump(operations, operation, at)) return false;
      } else if (!Step(operation)) {
        return false;
      }
    }
    return Pop(result);
  }

 private:
  bool Push(std::uint64_t value) {
    if (depth_ == kMaxStack) return false;
    stack_[depth_++] = value;
    return true;
  }
  bool Pop(std::uint64_t& value) {
    if (depth_ == 0) return false;
    value = stack_[--depth_];
    return true;
  }
  bool PushRegister(std::uint64_t number, std::uint64_t offset) {
    return number < kRegisterCount && Push(registers_[number] + offset);
  }

  // A branch's target is a distance in bytes from the operation after it (3 bytes on).
  static bool Jump(const std::vector<Dwarf_Op>& operations, const Dwarf_Op& branch,
                   std::size_t& at) {
    const std::uint64_t target = branch.offset + 3 + branch.number;
    for (at = 0; at < operations.size(); ++at) {
      if (operations[at].offset == target) return true;
    }
    // To the end is where one stops.
    return target > operations.back().offset;
  }

  bool Dereference(std::uint64_t size) {
    std::uint64_t address = 0, value = 0;
    return Pop(address) && size >= 1 && size <= sizeof value && memory_(address, &value, size) &&
           Push(value);
  }

  bool Pick(std::uint64_t depth) { return depth < depth_ && Push(stack_[depth_ - 1 - depth]); }

  bool Binary(unsigned atom) {
    std::uint64_t b = 0, a = 0;
    if (!Pop(b) || !Pop(a)) return false;
    const auto signed_a = static_cast<std::int64_t>(a), signed_b = static_cast<std::int64_t>(b);
    switch (atom) {
      case DW_OP_and:
        return Push(a & b);
      case DW_OP_or:
        return Push(a | b);
      case DW_OP_xor:
        return Push(a ^ b);
      case DW_OP_plus:
        return Push(a + b);
      case DW_OP_minus:
        return Push(a - b);
      case DW_OP_mul:
        return Push(a * b);
      case DW_OP_mod:
        return b != 0 && Push(a % b);
      case DW_OP_div:
        if (b == 0) return false;
        return Push(signed_b == -1 ? 0 - a : static_cast<std::uint64_t>(signed_a / signed_b));
      case DW_OP_shl:
        return Push(b < 64 ? a << b : 0);
      case DW_OP_shr:
        return Push(b < 64 ? a >> b : 0);
      case DW_OP_shra:
        return Push(static_cast<std::uint64_t>(signed_a >> (b < 64 ? b : 63)));
      case DW_OP_eq:
        return Push(a == b ? 1 : 0);
      case DW_OP_ne:
        return Push(a != b ? 1 : 0);
      case DW_OP_lt:
        return Push(signed_a < signed_b ? 1 : 0);
      case DW_OP_le:
        return Push(signed_a <= signed_b ? 1 : 0);
      case DW_OP_gt:
        return Push(signed_a > signed_b ? 1 : 0);
      case DW_OP_ge:
        return Push(signed_a >= signed_b ? 1 : 0);
      default:
        return false;
    }
  }

  bool Step(const Dwarf_Op& operation) {
    const unsigned atom = operation.atom;
    if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) return Push(atom - DW_OP_lit0);
    if (atom >= DW_OP_breg0 && atom <= DW_OP_breg16)
      return PushRegister(atom - DW_OP_breg0, operation.number);
    std::uint64_t a = 0, b = 0;
    switch (atom) {
      case DW_OP_nop:
        return true;
      case DW_OP_bregx:
        return PushRegister(operation.number, operation.number2);
      case DW_OP_call_frame_cfa:
        return Push(cfa_);
      case DW_OP_addr:
      case DW_OP_const1u:
      case DW_OP_const1s:
      case DW_OP_const2u:
      case DW_OP_const2s:
      case DW_OP_const4u:
      case DW_OP_const4s:
      case DW_OP_const8u:
      case DW_OP_const8s:
      case DW_OP_constu:
      case DW_OP_consts:
        return Push(operation.number);
      case DW_OP_plus_uconst:
        return Pop(a) && Push(a + operation.number);
      case DW_OP_deref:
        return Dereference(8);
      case DW_OP_deref_size:
        return Dereference(operation.number);
      case DW_OP_dup:
        return Pick(0);
      case DW_OP_over:
        return Pick(1);
      case DW_OP_pick:
        return Pick(operation.number);
      case DW_OP_drop:
        return Pop(a);
      case DW_OP_swap:
        return Pop(a) && Pop(b) && Push(a) && Push(b);
      case DW_OP_neg:
        return Pop(a) && Push(0 - a);
      case DW_OP_not:
        return Pop(a) && Push(~a);
      case DW_OP_abs:
        return Pop(a) && Push(static_cast<std::int64_t>(a) < 0 ? 0 - a : a);
      default:
        return Binary(atom);
    }
  }

  const RegisterFile& registers_;
  const MemoryReader& memory_;
  std::uint64_t cfa_;
  std::array<std::uint64_t, kMaxStack> stack_;
  std::size_t depth_ = 0;
};

// "CFA + offset" as libdw writes it.
bool IsCfaOffset(const std::vector<Dwarf_Op>& expression, std::int64_t& offset) {
  if (expression.empty() || expression.size() > 2 || expression[0].atom != DW_OP_call_frame_cfa)
    return false;
  offset = 0;
  if (expression.size() == 1) return true;
  offset = static_cast<std::int64_t>(expression[1].number);
  return expression[1].atom == DW_OP_plus_uconst;
}

}  // namespace

bool FullRule::Apply(const RegisterFile& frame, const MemoryReader& memory, RegisterFile& caller,
                     std::uint64_t& cfa_value) const {
  bool is_value = false;
  if (!Evaluator(frame, memory, 0).Run(cfa, cfa_value, is_value)) return false;
  caller = frame;
  caller[kRsp] = cfa_value;
  for (int number = 0; number < kRegisterCount; ++number) {
    const Register& rule = registers[number];
    if (rule.kind != Kind::kExpression) continue;
    std::uint64_t value = 0;
    const bool known = Evaluator(frame, memory, cfa_value).Run(rule.expression, value, is_value) &&
                       (is_value || memory(value, &value, sizeof value));
    // Without the others one can still go on.
    if (!known && (number == kRsp || number == kReturnAddress)) return false;
    if (!known) continue;
    caller[number] = value;
  }
  return true;
}

std::optional<FullRule> ReadRule(Dwarf_Frame* frame) {
  FullRule rule;
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  if (dwarf_frame_cfa(frame, &operations, &count) != 0 || count == 0) return std::nullopt;
  rule.cfa.assign(operations, operations + count);
  if (dwarf_frame_info(frame, nullptr, nullptr, &rule.is_signal_frame) < 0) return std::nullopt;
  for (int number = 0; number < kRegisterCount; ++number) {
    Dwarf_Op space[3];
    if (dwarf_frame_register(frame, number, space, &operations, &count) != 0) return std::nullopt;
    FullRule::Register& location = rule.registers[number];
    if (count != 0) {
      location.kind = FullRule::Kind::kExpression;
      location.expression.assign(operations, operations + count);
    } else {
      location.kind = operations == nullptr ? FullRule::Kind::kSame : FullRule::Kind::kUndefined;
    }
  }
  return rule;
}

std::optional<CompactRule> Compact(const FullRule& rule) {
  if (rule.cfa.size() != 1 || rule.is_signal_frame) return std::nullopt;
  const Dwarf_Op& cfa = rule.cfa[0];
  std::optional<CompactRule> compact;
  if (cfa.atom >= DW_OP_breg0 && cfa.atom <= DW_OP_breg15) {
    compact = CompactRule::Regular(cfa.atom - DW_OP_breg0, static_cast<std::int64_t>(cfa.number));
  } else if (cfa.atom == DW_OP_bregx) {
    compact =
        CompactRule::Regular(static_cast<int>(cfa.number), static_cast<std::int64_t>(cfa.number2));
  }
  if (!compact) return std::nullopt;
  for (int number = 0; number < kRegisterCount; ++number) {
    const FullRule::Register& location = rule.registers[number];
    if (location.kind == FullRule::Kind::kSame) continue;
    if (location.kind == FullRule::Kind::kUndefined && number != kReturnAddress) continue;
    std::int64_t offset = 0;
    if (number == kRsp) {
      // rsp = CFA: libdw's default for this machine.
      if (location.expression.size() <= 3 && location.expression.back().atom == DW_OP_stack_value) {
        std::vector<Dwarf_Op> value(location.expression.begin(), location.expression.end() - 1);
        if (IsCfaOffset(value, offset) && offset == 0) continue;
      }
      return std::nullopt;
    }
    if (!IsCfaOffset(location.expression, offset)) return std::nullopt;
    if (number == kReturnAddress) {
      if (offset != -8) return std::nullopt;
      continue;
    }
    int which = 0;
    while (which < CompactRule::kSavedCount && CompactRule::kSaved[which] != number) ++which;
    if (which == CompactRule::kSavedCount || offset % 8 != 0 ||
        !compact->SetSaved(which, -offset / 8 - 1)) {
      return std::nullopt;
    }
  }
  // The return address must be one that is in memory.
  if (rule.registers[kReturnAddress].kind != FullRule::Kind::kExpression) return std::nullopt;
  return compact;
}

}  // namespace trapline
