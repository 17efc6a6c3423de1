// Which code is let into a code cache that has no room for all the code in use.
#pragma once

#include <array>
#include <cstdint>

namespace trapline {

// Where the cache is full again soon after it was emptied, code is given up before it was worth its
// translation, unless it is run often. So threads have to come to it several times first, from code
// in the cache, and run it natively until then: the more often, the sooner the cache is full. Code
// that meets shared pages natively is not asked for here: it is translated at once. Not
// thread-safe. Times in nanoseconds, of one clock.
class CacheAdmission {
 public:
  static constexpr unsigned kMost = 64;

  // How often code must be asked for is in [least, most]; 1: it is translated at once.
  explicit CacheAdmission(unsigned least = 1, unsigned most = kMost)
      : least_(least), most_(most), threshold_(least) {}

  // The cache was full, and is empty now.
  void OnFull(std::uint64_t now);
  // Code at `rip`, which is not in the cache, is asked for: whether it is to be translated.
  bool Admits(std::uint64_t rip);

  unsigned threshold() const { return threshold_; }
  std::uint64_t declined() const { return declined_; }  // in all

 private:
  unsigned least_, most_, threshold_;
  std::uint64_t since_ = 0;  // when the cache was emptied last
  std::uint64_t declined_ = 0;
  // How often code was asked for since then, by a hash of its address: two that share a number are
  // translated sooner.
  static constexpr unsigned kHashBits = 16;
  std::array<std::uint8_t, 1 << kHashBits> requests_{};
};

}  // namespace trapline
