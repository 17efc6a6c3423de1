// Vector clocks whose times are positions in the stream of events.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "detector/vector_clock.h"

namespace trapline {

// A clock policy for Synchronisation, under which an access is remembered with its moment alone:
// C_u(t) is the moment of the last release of t that u has heard of, so what t did up to then
// happened before, and an access belongs to the epoch of its thread if it came after the thread's
// own last release. Of its own doings a thread knows all.
class MomentClocks {
 public:
  struct ThreadClock {
    VectorClock clock;  // kAlways of the thread itself
    Clock released = kBeginning;
    ThreadId thread = 0;
    // The moments of earlier releases, ascending, and the latest of those that were forgotten; if
    // they are remembered.
    std::vector<Clock> releases;
    Clock forgotten = kBeginning;
  };
  using ObjectClock = VectorClock;

  // The moment of the event at this position of the stream.
  static constexpr Clock MomentAt(std::uint64_t index) { return index + kBeginning + 1; }
  static constexpr std::uint64_t PositionOf(Clock moment) { return moment - kBeginning - 1; }

  static const VectorClock& ClockOf(const ThreadClock& thread) { return thread.clock; }
  // The clock of an epoch is the moment after which it begins.
  static Epoch EpochOf(const ThreadClock& thread) { return {thread.thread, thread.released}; }
  Epoch NowOf(const ThreadClock& thread) const { return {thread.thread, now_}; }
  void MoveTo(std::uint64_t index) { now_ = MomentAt(index); }

  static void Start(ThreadClock& thread, ThreadId id) {
    thread.clock.Set(id, kAlways);
    thread.thread = id;
  }
  void Copy(ObjectClock& object, const ThreadClock& thread) const {
    object = thread.clock;
    object.Set(thread.thread, now_);
  }
  void Increment(ThreadClock& thread) const {
    thread.released = now_;
    if (remembers_releases_) Remember(thread);
  }

  // From now on InOneEpoch may know of earlier epochs.
  void RememberReleases() { remembers_releases_ = true; }
  // Whether what the thread did at both moments belongs to one epoch of it, so that whoever comes
  // after one comes after both. False if that is not known any more.
  static bool InOneEpoch(const ThreadClock& thread, Clock a, Clock b) {
    const auto [first, last] = std::minmax(a, b);
    if (first > thread.released) return true;
    if (first <= thread.forgotten) return false;
    const auto release = std::lower_bound(thread.releases.begin(), thread.releases.end(), first);
    return release == thread.releases.end() || *release >= last;
  }
  static void Join(ThreadClock& thread, const ObjectClock& object) { thread.clock.Join(object); }
  void Join(ThreadClock& thread, const ThreadClock& other) const { JoinInto(thread.clock, other); }
  void JoinInto(ObjectClock& object, const ThreadClock& thread) const {
    object.Join(thread.clock);
    object.Set(thread.thread, now_);
  }
  static void Release(ThreadClock& thread) { thread.clock.Release(); }

 private:
  static constexpr Clock kBeginning = 1;  // not 0, which is that of the empty epoch
  static constexpr Clock kAlways = (Clock{1} << 40) - 1;
  static constexpr std::size_t kMostReleases = 8192;  // 64 KiB for each thread

  static void Remember(ThreadClock& thread) {
    if (thread.releases.size() == kMostReleases) {
      const auto half = thread.releases.begin() + kMostReleases / 2;
      thread.forgotten = half[-1];
      thread.releases.erase(thread.releases.begin(), half);
    }
    thread.releases.push_back(thread.released);
  }

  Clock now_ = kBeginning;
  bool remembers_releases_ = false;
};

}  // namespace trapline
