// A set of cache lines that may answer yes too often: whether it is worth looking for something at
// an address.
#pragma once

#include <bitset>
#include <cstdint>

namespace trapline {

// Not thread-safe.
class LineSet {
 public:
  void Add(std::uint64_t address, std::uint64_t size) {
    if (size > kMostBytes) {
      lines_.set();
      return;
    }
    for (std::uint64_t line = address / kLine; line <= (address + size - 1) / kLine; ++line)
      lines_.set(BitOf(line));
  }

  // False: nothing in [address, address+size) has been added. 0 < size.
  [[gnu::always_inline]] bool MayTouch(std::uint64_t address, std::uint64_t size) const {
    const std::uint64_t first = address / kLine;
    const std::uint64_t last = (address + size - 1) / kLine;
    if (lines_.test(BitOf(first))) return true;
    if (last == first) return false;
    if (last - first > kLooksAt) return true;
    for (std::uint64_t line = first + 1; line <= last; ++line) {
      if (lines_.test(BitOf(line))) return true;
    }
    return false;
  }

  void Clear() { lines_.reset(); }

 private:
  static constexpr std::uint64_t kLine = 64;
  static constexpr unsigned kBits = 16;  // 8 KiB, so that it stays in the first-level cache
  static constexpr std::uint64_t kMostBytes = 1 << 20;
  static constexpr std::uint64_t kLooksAt = 16;  // lines

  static std::size_t BitOf(std::uint64_t line) {
    return line * 0x9e3779b97f4a7c15u >> (64 - kBits);
  }

  std::bitset<std::size_t{1} << kBits> lines_;
};

}  // namespace trapline
