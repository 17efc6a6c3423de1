// Vector clocks that grow with the threads they have heard of (FastTrack, section 2.2).
// Freestanding with a suitable allocator policy.
#pragma once

#include "detector/epoch.h"
#include "detector/growing_array.h"

namespace trapline {

// A clock for every thread; threads beyond the stored ones are at 0. Not thread-safe.
template <class Allocator>
class VectorClockOver {
 public:
  Clock operator[](ThreadId thread) const { return thread < clocks_.size() ? clocks_[thread] : 0; }

  void Set(ThreadId thread, Clock clock) {
    clocks_.GrowTo(thread + 1);
    clocks_[thread] = clock;
  }

  // inc_t
  void Increment(ThreadId thread) { Set(thread, (*this)[thread] + 1); }

  // this := this ⊔ other
  void Join(const VectorClockOver& other) {
    clocks_.GrowTo(other.clocks_.size());
    for (std::uint32_t t = 0; t < other.clocks_.size(); ++t) {
      if (clocks_[t] < other.clocks_[t]) clocks_[t] = other.clocks_[t];
    }
  }

  // this := this ⊓ other
  void Meet(const VectorClockOver& other) {
    for (std::uint32_t t = 0; t < clocks_.size(); ++t) {
      if (const Clock theirs = other[t]; clocks_[t] > theirs) clocks_[t] = theirs;
    }
  }

  // c@t ≼ this: the event with this epoch happens before whoever owns this clock.
  bool Covers(Epoch epoch) const { return epoch.clock() <= (*this)[epoch.thread()]; }

  // other ⊑ this
  bool Covers(const VectorClockOver& other) const {
    for (std::uint32_t t = 0; t < other.clocks_.size(); ++t) {
      if (other.clocks_[t] > (*this)[t]) return false;
    }
    return true;
  }

  bool empty() const { return clocks_.empty(); }
  // Threads from there on are at 0.
  std::uint32_t size() const { return clocks_.size(); }
  void Prefetch() const { clocks_.Prefetch(); }

  // Back to the minimal clock; Release also gives the memory back.
  void Clear() { clocks_.Clear(); }
  void Release() { clocks_.Release(); }

 private:
  GrowingArray<Clock, Allocator> clocks_;
};

using VectorClock = VectorClockOver<HostAllocator>;

}  // namespace trapline
