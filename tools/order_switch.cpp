#include "tools/order_switch.h"

#include <algorithm>
#include <optional>

#include "translator/instruction.h"

namespace trapline {
namespace {

// An arm's instructions but for the jump, and where it leads to: behind the jump, or what follows
// where there is none.
struct Arm {
  std::size_t begin = 0, body_end = 0, end = 0;
  std::uint64_t target = 0;
  std::size_t access = 0;  // where the load or store is
  bool writes = false;
  std::int64_t address_slot = 0, value_slot = 0;  // displacements
};

class ArmReader {
 public:
  ArmReader(std::span<const unsigned char> code, std::uint64_t address)
      : code_(code), address_(address) {}

  std::optional<Arm> ArmAt(std::size_t begin) const {
    // mov displacement(%rbp), to a register of 8 bytes: cheaper to tell than to decode.
    if (begin + 3 > code_.size() || code_[begin] != 0x48 || code_[begin + 1] != 0x8b ||
        ((code_[begin + 2] & 0xc7) != 0x45 && (code_[begin + 2] & 0xc7) != 0x85)) {
      return {};
    }
    Arm arm{.begin = begin};
    std::size_t at = begin;
    const auto address = At(at);
    if (!address || !IsOfFrame(*address, false)) return {};
    const std::uint8_t pointer = address->reg();
    arm.address_slot = address->operands[0].displacement;
    at += address->length;
    auto next = At(at);
    if (next && IsOfFrame(*next, false)) {  // a store's value
      arm.value_slot = next->operands[0].displacement;
      at += next->length;
      next = At(at);
      arm.writes = true;
    }
    if (!next || !IsThrough(*next, pointer, arm.writes)) return {};
    arm.access = at;
    at += next->length;
    if (!arm.writes) {
      const auto result = At(at);
      if (!result || !IsOfFrame(*result, true)) return {};
      at += result->length;
    }
    arm.body_end = arm.end = at;
    arm.target = address_ + at;
    if (const auto jump = At(at); jump && jump->branch == Branch::kJump) {
      arm.end += jump->length;
      arm.target = jump->target;
    }
    return arm;
  }

  // Whether `arm` is followed by the same one, which leads to the same place.
  std::optional<Arm> SameBehind(const Arm& arm) const {
    const auto next = ArmAt(arm.end);
    return next && next->target == arm.target && HasBodyOf(arm, arm.end) ? next : std::nullopt;
  }

  // ... or by an xchg of the same address and value.
  bool ExchangeIsBehind(const Arm& arm) const {
    const auto address = At(arm.end);
    if (!address || !IsOfFrame(*address, false)) return false;
    const auto value = At(arm.end + address->length);
    if (!value || !IsOfFrame(*value, false)) return false;
    const auto exchange = At(arm.end + address->length + value->length);
    return exchange && IsExchange(*exchange) && exchange->memory().size() == 1 &&
           exchange->operands[0].base == address->reg() &&
           address->operands[0].displacement == arm.address_slot &&
           value->operands[0].displacement == arm.value_slot;
  }

 private:
  std::optional<Instruction> At(std::size_t offset) const {
    if (offset >= code_.size()) return std::nullopt;
    return Decode(code_.subspan(offset), address_ + offset);
  }

  static bool IsMove(const Instruction& in, bool writes) {
    return MayBeAtomic(in) && in.memory().size() == 1 && in.operands[0].writes == writes &&
           in.operands[0].index == kNoRegister && in.operands[0].segment == Segment::kNone;
  }
  static bool IsOfFrame(const Instruction& in, bool writes) {
    return IsMove(in, writes) && in.operands[0].base == kRbp;
  }
  static bool IsThrough(const Instruction& in, std::uint8_t pointer, bool writes) {
    return IsMove(in, writes) && in.operands[0].base == pointer && in.operands[0].displacement == 0;
  }

  // Whether the bytes at `begin` are those of the arm's body.
  bool HasBodyOf(const Arm& arm, std::size_t begin) const {
    const std::size_t size = arm.body_end - arm.begin;
    return begin + size <= code_.size() &&
           std::ranges::equal(code_.subspan(arm.begin, size), code_.subspan(begin, size));
  }

  const std::span<const unsigned char> code_;
  const std::uint64_t address_;  // of its first byte
};

}  // namespace

bool IsInOrderSwitch(std::span<const unsigned char, 2 * kOrderSwitchReach> code, std::uint64_t ip) {
  const ArmReader reader(code, ip - kOrderSwitchReach);
  // The first arm may be this one or before it.
  for (std::size_t begin = 0; begin < kOrderSwitchReach; ++begin) {
    const auto first = reader.ArmAt(begin);
    const auto second = first ? reader.SameBehind(*first) : std::nullopt;
    if (!second) continue;
    const bool is_of_first_two =
        first->access == kOrderSwitchReach || second->access == kOrderSwitchReach;
    if (first->writes) {
      if (is_of_first_two && reader.ExchangeIsBehind(*second)) return true;
      continue;
    }
    const auto third = reader.SameBehind(*second);
    if (third && (is_of_first_two || third->access == kOrderSwitchReach)) return true;
  }
  return false;
}

}  // namespace trapline
