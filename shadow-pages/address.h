// Addresses of different worlds are different types, so that they cannot be mixed.
#pragma once

#include <compare>
#include <cstdint>

namespace trapline {

template <typename Space>
struct Address {
  std::uint64_t value = 0;

  constexpr auto operator<=>(const Address&) const = default;  // NOLINT(modernize-use-nullptr)
  constexpr Address operator+(std::uint64_t bytes) const { return {value + bytes}; }
  constexpr Address operator-(std::uint64_t bytes) const { return {value - bytes}; }
  constexpr std::uint64_t operator-(Address other) const { return value - other.value; }
};

// Guest virtual = host virtual: the program's memory has the same address in the monitor.
using GuestVirtual = Address<struct GuestVirtualSpace>;
using GuestPhysical = Address<struct GuestPhysicalSpace>;

inline constexpr std::uint64_t kPageSize = 4096;
inline constexpr std::uint64_t kLargePageSize = 2ull << 20;

constexpr std::uint64_t AlignDown(std::uint64_t value, std::uint64_t alignment) {
  return value & ~(alignment - 1);
}
constexpr std::uint64_t AlignUp(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

}  // namespace trapline
