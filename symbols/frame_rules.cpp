#include "symbols/frame_rules.h"

#include <dwarf.h>

#include <cstddef>

#include "symbols/dwarf_expression.h"

namespace trapline {
namespace {

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

bool FullRule::Apply(const FrameRegisters& frame, const MemoryReader& memory,
                     FrameRegisters& caller, std::uint64_t& cfa_value) const {
  bool is_value = false;
  EvaluationContext context{.registers = frame, .memory = memory};
  if (!EvaluateExpression(cfa, context, cfa_value, is_value)) return false;
  context.cfa = cfa_value;
  caller = frame;
  caller[kRsp] = cfa_value;
  for (int number = 0; number < kRegisterCount; ++number) {
    const Register& rule = registers[number];
    if (rule.kind != Kind::kExpression) continue;
    std::uint64_t value = 0;
    const bool known = EvaluateExpression(rule.expression, context, value, is_value) &&
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
