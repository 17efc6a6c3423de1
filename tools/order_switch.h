// What clang makes of an atomic load or store whose order is an argument, as in libstdc++'s
// headers, when it does not optimise: a switch over the orders, whose arms are the same plain
// instructions. Without debug info nothing else tells such an operation, for it is inlined even
// then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace trapline {

// How much code IsInOrderSwitch looks at on either side of the instruction, bytes.
inline constexpr std::size_t kOrderSwitchReach = 96;

// Whether the instruction at `ip`, in the middle of `code`, is a load of which there are three,
// each followed by a jump to the same place, or a store of which there are two, followed by the
// same as an xchg; each with the address, and the value, in the same slots of the frame.
bool IsInOrderSwitch(std::span<const unsigned char, 2 * kOrderSwitchReach> code, std::uint64_t ip);

}  // namespace trapline
