#include "symbols/dwarf_expression.h"

#include <dwarf.h>

#include <cstddef>

namespace trapline {
namespace {

constexpr std::size_t kMaxStack = 64;
constexpr int kMaxSteps = 1000;  // of an expression with branches

class Evaluator {
 public:
  explicit Evaluator(const EvaluationContext& context) : context_(context) {}

  bool Run(std::span<const Dwarf_Op> operations, std::uint64_t& result, bool& is_value) {
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
    return number < kRegisterCount && (context_.known_registers >> number & 1) != 0 &&
           Push(context_.registers[number] + offset);
  }

  // A branch's target is a distance in bytes from the operation after it (3 bytes on).
  static bool Jump(std::span<const Dwarf_Op> operations, const Dwarf_Op& branch, std::size_t& at) {
    const std::uint64_t target = branch.offset + 3 + branch.number;
    for (at = 0; at < operations.size(); ++at) {
      if (operations[at].offset == target) return true;
    }
    // To the end is where one stops.
    return target > operations.back().offset;
  }

  bool Dereference(std::uint64_t size) {
    std::uint64_t address = 0, value = 0;
    return Pop(address) && size >= 1 && size <= sizeof value &&
           context_.memory(address, &value, size) && Push(value);
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
        return context_.cfa && Push(*context_.cfa);
      case DW_OP_fbreg:
        return context_.frame_base && Push(*context_.frame_base + operation.number);
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

  const EvaluationContext& context_;
  std::array<std::uint64_t, kMaxStack> stack_;
  std::size_t depth_ = 0;
};

}  // namespace

bool EvaluateExpression(std::span<const Dwarf_Op> operations, const EvaluationContext& context,
                        std::uint64_t& result, bool& is_value) {
  return Evaluator(context).Run(operations, result, is_value);
}

}  // namespace trapline
