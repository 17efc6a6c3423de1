// Epochs: one access or release of one thread as a pair clock@thread (FastTrack, section 3).
// Freestanding: no allocation, no library calls.
#pragma once

#include <cstdint>

#include "detector/event.h"

namespace trapline {

// Logical time of one thread: counts its outgoing synchronisation edges. 0 = before its first
// event.
using Clock = std::uint64_t;

// c@t in 64 bits: the clock in the upper 40, the thread in the lower 24. The default value is the
// minimal epoch: no access at all, which happens before everything.
class Epoch {
 public:
  constexpr Epoch() = default;
  // thread < kMaxThreads, clock < 2^40.
  constexpr Epoch(ThreadId thread, Clock clock) : bits_(clock << kThreadBits | thread) {}

  constexpr ThreadId thread() const { return static_cast<ThreadId>(bits_ & (kMaxThreads - 1)); }
  constexpr Clock clock() const { return bits_ >> kThreadBits; }
  constexpr bool empty() const { return clock() == 0; }

  friend constexpr bool operator==(Epoch, Epoch) = default;

 private:
  static constexpr int kThreadBits = 24;
  static_assert(kMaxThreads == ThreadId{1} << kThreadBits);

  std::uint64_t bits_ = 0;
};
static_assert(sizeof(Epoch) == 8);

}  // namespace trapline
