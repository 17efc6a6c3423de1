// Mixing of integers into a hash value.
#pragma once

#include <cstdint>

namespace trapline {

// A well-mixed function of all values given; the same on every machine.
template <class... Values>
constexpr std::uint64_t HashOf(Values... values) {
  std::uint64_t hash = 0;
  const auto mix = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  };
  (mix(static_cast<std::uint64_t>(values)), ...);
  return hash;
}

}  // namespace trapline
