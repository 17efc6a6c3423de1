// Vector clocks whose times are positions in the stream of events.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "detector/ended_clocks.h"
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
    bool remembers_knowledge = false;
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
  void Increment(ThreadClock& thread) {
    thread.released = now_;
    if (remembers_releases_) Remember(thread);
  }
  // The thread has ended. Of many threads little is kept: its clock is away until Resume.
  void End(ThreadClock& thread) {
    ended_.Put(thread.thread, std::exchange(thread.clock, {}));
    if (thread.thread < releases_.size()) {
      releases_[thread.thread].Keep(kKeptAtEnd);
      releases_[thread.thread].moments.shrink_to_fit();
    }
    if (thread.thread < learnt_.size()) learnt_[thread.thread] = {};
  }

  // After End: somebody asks for the clock, such as who joins the thread.
  void Resume(ThreadClock& thread) { thread.clock = ended_.Take(thread.thread); }

  // From now on InOneEpoch may know of earlier epochs.
  void RememberReleases() { remembers_releases_ = true; }
  // Whether what the thread did at both moments belongs to one epoch of it, so that whoever comes
  // after one comes after both. False if that is not known any more.
  bool InOneEpoch(const ThreadClock& thread, Clock a, Clock b) const {
    const auto [first, last] = std::minmax(a, b);
    if (first > thread.released) return true;
    if (thread.thread >= releases_.size()) return false;
    const auto& [moments, forgotten] = releases_[thread.thread];
    if (first <= forgotten) return false;
    const auto release = std::lower_bound(moments.begin(), moments.end(), first);
    return release == moments.end() || *release >= last;
  }
  void Join(ThreadClock& thread, const ObjectClock& object) {
    if (thread.remembers_knowledge) NoteLearnt(thread, object);
    thread.clock.Join(object);
  }
  void Join(ThreadClock& thread, const ThreadClock& other) {
    if (thread.remembers_knowledge) {
      ObjectClock known;
      JoinInto(known, other);
      NoteLearnt(thread, known);
    }
    JoinInto(thread.clock, other);
  }
  void JoinInto(ObjectClock& object, const ThreadClock& thread) const {
    object.Join(thread.clock);
    object.Set(thread.thread, now_);
  }
  static void Release(ThreadClock& thread) { thread.clock.Release(); }

  // From now on JoinKnownAt may be asked for later moments of the thread.
  static void RememberKnowledge(ThreadClock& thread) { thread.remembers_knowledge = true; }
  // C_o := C_o ⊔ what C_t was when the thread released something at that moment. If it has learnt
  // of another one more than kLeastLearnt times since, it may be a little more.
  static constexpr std::size_t kLeastLearnt = 4096;
  void JoinKnownAt(ObjectClock& object, const ThreadClock& thread, Clock release) const {
    for (ThreadId other = 0; other < thread.clock.size(); ++other) {
      const Clock known = other == thread.thread ? release : KnownAt(thread, other, release);
      if (object[other] < known) object.Set(other, known);
    }
  }

 private:
  static constexpr Clock kBeginning = 1;  // not 0, which is that of the empty epoch
  static constexpr Clock kAlways = (Clock{1} << 40) - 1;
  static constexpr std::size_t kMostReleases = 8192;  // 64 KiB for each thread
  static constexpr std::size_t kKeptAtEnd = 32;

  struct Releases {
    std::vector<Clock> moments;    // ascending
    Clock forgotten = kBeginning;  // the latest one that is not among them any more

    // Forgets all but the last `count`.
    void Keep(std::size_t count) {
      if (moments.size() <= count) return;
      const auto kept = moments.end() - static_cast<std::ptrdiff_t>(count);
      forgotten = kept[-1];
      moments.erase(moments.begin(), kept);
    }
  };

  void Remember(const ThreadClock& thread) {
    if (thread.thread >= releases_.size()) releases_.resize(std::size_t{thread.thread} + 1);
    Releases& releases = releases_[thread.thread];
    if (releases.moments.size() == kMostReleases) releases.Keep(kMostReleases / 2);
    releases.moments.push_back(thread.released);
  }

  // From which moment on a thread knew what of another one; ascending. The first one holds from
  // ever on.
  struct Learnt {
    Clock moment, known;
  };
  static constexpr std::size_t kMostLearnt = 2 * kLeastLearnt;  // 128 KiB for each pair of threads

  void NoteLearnt(const ThreadClock& thread, const VectorClock& object) {
    for (ThreadId other = 0; other < object.size(); ++other) {
      const Clock before = thread.clock[other];
      if (object[other] <= before) continue;
      if (thread.thread >= learnt_.size()) learnt_.resize(std::size_t{thread.thread} + 1);
      auto& of_thread = learnt_[thread.thread];
      if (other >= of_thread.size()) of_thread.resize(std::size_t{other} + 1);
      std::vector<Learnt>& learnt = of_thread[other];
      if (learnt.empty()) learnt.push_back({0, before});
      if (learnt.size() == kMostLearnt)
        learnt.erase(learnt.begin(), learnt.begin() + kMostLearnt / 2);
      learnt.push_back({now_, object[other]});
    }
  }
  Clock KnownAt(const ThreadClock& thread, ThreadId other, Clock moment) const {
    if (thread.thread >= learnt_.size() || other >= learnt_[thread.thread].size())
      return thread.clock[other];
    const std::vector<Learnt>& learnt = learnt_[thread.thread][other];
    if (learnt.empty()) return thread.clock[other];
    const auto later =
        std::upper_bound(learnt.begin() + 1, learnt.end(), moment,
                         [](Clock wanted, const Learnt& entry) { return wanted < entry.moment; });
    return later[-1].known;
  }

  Clock now_ = kBeginning;
  EndedClocks ended_;
  std::vector<std::vector<std::vector<Learnt>>> learnt_;  // by thread, and other one
  std::vector<Releases> releases_;                        // by thread, if they are remembered
  bool remembers_releases_ = false;
};

}  // namespace trapline
