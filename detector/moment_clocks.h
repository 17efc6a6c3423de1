// Vector clocks whose times are positions in the stream of events.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "detector/ended_clocks.h"
#include "detector/vector_clock.h"

namespace trapline {

// A clock policy for Synchronisation, under which an access is remembered with its moment alone:
// C_u(t) is the moment of the last release of t that u has heard of, so what t did up to then
// happened before, and an access belongs to the epoch of its thread if it came after the thread's
// own last release. Of its own doings a thread knows all.
//
// A clock has a time for each chain of threads, of which each was started by who knew of all
// accesses of the one before, which had ended (chain clocks: Agarwal and Garg, PODC 2005). So
// clocks grow with the threads that a program has at once, not with all that it ever makes. In an
// Epoch, the chain stands for the thread.
class MomentClocks {
 public:
  struct ThreadClock {
    VectorClock clock;  // kAlways of its own chain
    Clock released = kBeginning;
    std::uint64_t near = 0;  // where that begins which is near its first access; 0: none yet
    ThreadId thread = 0;
    ThreadId chain = 0;
    std::array<bool, 2> accessed{};  // since its last release: kElsewhere, kNearFirst
    bool owns_chain = false;         // it has been started, and the chain is no later thread's
    bool remembers_knowledge = false;
  };
  using ObjectClock = VectorClock;

  // The moment of the event at this position of the stream.
  static constexpr Clock MomentAt(std::uint64_t index) { return index + kBeginning + 1; }
  static constexpr std::uint64_t PositionOf(Clock moment) { return moment - kBeginning - 1; }

  static const VectorClock& ClockOf(const ThreadClock& thread) { return thread.clock; }
  // The clock of an epoch is the moment after which it begins.
  static Epoch EpochOf(const ThreadClock& thread) { return {thread.chain, thread.released}; }
  Epoch NowOf(const ThreadClock& thread) const { return {thread.chain, now_}; }
  void MoveTo(std::uint64_t index) { now_ = MomentAt(index); }

  // On a chain of its own, if none was handed on to it.
  void Start(ThreadClock& thread, ThreadId id) {
    if (thread.owns_chain) return;
    chains_.emplace_back();
    Own(thread, id, static_cast<ThreadId>(chains_.size() - 1));
  }
  // An access of the thread is about to be remembered.
  [[gnu::always_inline]] static void NoteAccess(ThreadClock& thread, const Event& access) {
    if (thread.near == 0) [[unlikely]]
      thread.near = access.address > kNearBelow ? access.address - kNearBelow : 1;
    const bool is_near = access.address - thread.near < kNear && access.size <= kShort;
    thread.accessed[is_near ? kNearFirst : kElsewhere] = true;
  }
  // Accesses to [address, address+size) have been forgotten: as when a thread that ends gives its
  // stack back, and none is left that it has made there.
  void NoteCleared(ThreadClock& thread, std::uint64_t address, std::uint64_t size) {
    if (!thread.owns_chain || thread.near < address) return;
    if (thread.near - address + kNear + kShort > size) return;
    Chain& chain = chains_[thread.chain];
    if (copied_ > chain.begun) return;
    thread.accessed[kNearFirst] = false;
    chain.known_from[kNearFirst] = 0;
  }
  // Accesses have become others', too.
  void NoteCopied() { copied_ = now_ + 1; }
  // A thread that has ended, of all of whose accesses the other one knows and whose chain may be
  // handed on. Takes time in proportion to the number of chains.
  std::optional<ThreadId> FindEndedBefore(const ThreadClock& thread) const {
    for (ThreadId chain = 0; chain < chains_.size(); ++chain) {
      const Chain& candidate = chains_[chain];
      const Clock known_from = std::max(candidate.known_from[0], candidate.known_from[1]);
      if (candidate.has_ended && known_from <= thread.clock[chain]) return candidate.owner;
    }
    return {};
  }
  // The one that FindEndedBefore has found hands its chain on to one that is not yet started, whose
  // first epoch begins now. Its clock must not be away.
  void HandOn(ThreadClock& ended, ThreadClock& next, ThreadId id) {
    ended.owns_chain = false;
    if (!ended.clock.empty()) ended.clock.Set(ended.chain, now_);
    next.released = now_;
    auto& known_from = chains_[ended.chain].known_from;
    known_from = {std::max(known_from[0], known_from[1]), 0};
    Own(next, id, ended.chain);
  }
  void Copy(ObjectClock& object, const ThreadClock& thread) const {
    object = thread.clock;
    if (thread.owns_chain) object.Set(thread.chain, now_);
  }
  void Increment(ThreadClock& thread) {
    thread.released = now_;
    NoteLast(thread);
    if (remembers_releases_) Remember(thread);
  }
  // The thread has ended. Of many threads little is kept: its clock is away until Resume.
  void End(ThreadClock& thread) {
    NoteLast(thread);
    if (thread.owns_chain) chains_[thread.chain].has_ended = true;
    if (!thread.clock.empty()) ended_.Put(thread.thread, std::exchange(thread.clock, {}));
    if (thread.thread < releases_.size()) {
      releases_[thread.thread].Keep(kKeptAtEnd);
      releases_[thread.thread].moments.shrink_to_fit();
    }
    if (thread.thread < learnt_.size()) learnt_[thread.thread] = {};
  }

  // After End: somebody asks for the clock, such as who joins the thread.
  void Resume(ThreadClock& thread) { thread.clock = ended_.Take(thread.thread); }
  // After Resume: the thread has not ended after all.
  void GoOn(ThreadClock& thread, ThreadId id) {
    if (thread.owns_chain) {
      chains_[thread.chain].has_ended = false;
    } else {
      Start(thread, id);
    }
  }

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
    if (thread.owns_chain) object.Set(thread.chain, now_);
  }
  // The clock is empty from now on.
  static void Release(ThreadClock& thread) { thread.clock.Release(); }

  // From now on JoinKnownAt may be asked for later moments of the thread.
  static void RememberKnowledge(ThreadClock& thread) { thread.remembers_knowledge = true; }
  // C_o := C_o ⊔ what C_t was when the thread released something at that moment. If it has learnt
  // of another one more than kLeastLearnt times since, it may be a little more.
  static constexpr std::size_t kLeastLearnt = 4096;
  void JoinKnownAt(ObjectClock& object, const ThreadClock& thread, Clock release) const {
    for (ThreadId other = 0; other < thread.clock.size(); ++other) {
      const Clock known = other == thread.chain ? release : KnownAt(thread, other, release);
      if (object[other] < known) object.Set(other, known);
    }
  }

 private:
  static constexpr Clock kBeginning = 1;  // not 0, which is that of the empty epoch
  static constexpr Clock kAlways = (Clock{1} << 40) - 1;
  static constexpr std::size_t kMostReleases = 8192;  // 64 KiB for each thread
  static constexpr std::size_t kKeptAtEnd = 32;
  // A thread's first access is most often one to its stack.
  static constexpr std::size_t kElsewhere = 0;
  static constexpr std::size_t kNearFirst = 1;
  static constexpr std::uint64_t kNearBelow = 8192;
  static constexpr std::uint64_t kNear = kNearBelow + 2048;
  static constexpr std::uint64_t kShort = 64;

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

  struct Chain {
    // Who knows of these moments knows of all accesses before the last release, by `accessed`.
    std::array<Clock, 2> known_from{};
    Clock begun = 0;     // by the owner
    ThreadId owner = 0;  // the thread that is last on it
    bool has_ended = false;
  };

  void Own(ThreadClock& thread, ThreadId id, ThreadId chain) {
    thread.thread = id;
    thread.chain = chain;
    thread.owns_chain = true;
    thread.clock.Set(chain, kAlways);
    chains_[chain].begun = now_;
    chains_[chain].owner = id;
    chains_[chain].has_ended = false;
  }

  // What the thread has accessed is known to who knows of this moment.
  void NoteLast(ThreadClock& thread) {
    for (const std::size_t where : {kElsewhere, kNearFirst}) {
      if (std::exchange(thread.accessed[where], false))
        chains_[thread.chain].known_from[where] = now_;
    }
  }

  void Remember(const ThreadClock& thread) {
    if (thread.thread >= releases_.size()) releases_.resize(std::size_t{thread.thread} + 1);
    Releases& releases = releases_[thread.thread];
    if (releases.moments.size() == kMostReleases) releases.Keep(kMostReleases / 2);
    releases.moments.push_back(thread.released);
  }

  // From which moment on a thread knew what of another chain; ascending. The first one holds from
  // ever on.
  struct Learnt {
    Clock moment, known;
  };
  static constexpr std::size_t kMostLearnt = 2 * kLeastLearnt;  // 128 KiB for each such pair

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
  Clock copied_ = kBeginning;  // after the last NoteCopied
  EndedClocks ended_;
  std::vector<Chain> chains_;
  std::vector<std::vector<std::vector<Learnt>>> learnt_;  // by thread, and other chain
  std::vector<Releases> releases_;                        // by thread, if they are remembered
  bool remembers_releases_ = false;
};

}  // namespace trapline
