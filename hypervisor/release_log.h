// What was given away lately to whoever reads a word atomically.
//
// Guarded by Tracking's mutex.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace trapline {

class ReleaseLog {
 public:
  struct Bytes {
    std::uint64_t address, size;
  };

  // [address, address + size) may have been given something.
  void Add(std::uint64_t address, std::uint64_t size) {
    latest_[count_ % kKept] = {address, size};
    ++count_;
  }
  // Any memory may.
  void AddAnywhere() { first_known_ = ++count_; }

  // How many there were so far.
  std::uint64_t count() const { return count_; }
  // Whether all since there were `count` of them can be told.
  bool Knows(std::uint64_t count) const { return count >= first_known_ && count_ - count <= kKept; }
  // Calls visit(Bytes) for each of those, which Knows.
  template <class Visit>
  void ForEachSince(std::uint64_t count, Visit&& visit) const {
    for (; count != count_; ++count) visit(latest_[count % kKept]);
  }

 private:
  // Beyond that a thread had better look at all that it watches.
  static constexpr std::size_t kKept = 32;

  std::array<Bytes, kKept> latest_{};
  std::uint64_t count_ = 0, first_known_ = 0;
};

}  // namespace trapline
