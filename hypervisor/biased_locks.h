// The monitor's side of guest-agent/biased_locks.h: which threads have a table, and when what they
// have noted is told.
//
// Not thread-safe, but for what threads of the guest do to the tables at the same time. When not
// started, nothing happens.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "detector/event.h"
#include "guest-agent/agent.h"

namespace trapline {

class BiasedLocks {
 public:
  // A lock was given back by the thread at event `number` (at least; its lower half is noted).
  struct LateRelease {
    ThreadId thread;
    std::uint64_t lock;
    std::uint64_t number;
  };
  using Tell = std::function<void(const LateRelease&)>;

  // `next_event`: the number that the next event of any thread will have.
  BiasedLocks(std::function<std::uint64_t()> next_event, Tell tell);

  // From now on threads are looked at (Add); locks are biased once `after` events of locks have
  // been told. Needs the memory at TRAPLINE_LOCKS.
  void Start(std::uint64_t after);
  // No lock that is taken from now on is biased.
  void End();

  // The thread has this table of repeats, if any.
  void Add(agent::ThreadPage& page, std::optional<unsigned> slot);
  // The thread has ended, all that it did has been handled: what it has noted is told.
  void Remove(unsigned slot);

  // An event of a lock, taken or not, has been told. All notes are when one thread has told of so
  // many as taken, for of what it knew at its releases the detector forgets what is older than as
  // many times that it has learnt of another one (MomentClocks::kLeastLearnt).
  static constexpr std::uint32_t kMostAcquired = 4096;
  void OnTold(ThreadId thread, bool acquired) {
    if (!started_) return;
    if (told_ < after_ && ++told_ >= after_) Enable();
    if (!acquired) return;
    if (thread >= acquired_.size()) acquired_.resize(std::size_t{thread} + 1);
    if (++acquired_[thread] >= kMostAcquired) TellAll();
  }
  // An event of the lock is about to be told that the agent has not seen: it is nobody's from now
  // on. drain() handles all that threads have queued until then.
  void Touch(std::uint64_t lock, const std::function<void()>& drain);
  // The thread has told of the event with this number, and all before.
  void OnTick(unsigned slot, std::uint64_t number) { ticks_[slot] = number; }
  // What is noted of events that were handled.
  void TellAll();
  // Nothing was noted.
  void Clear();

 private:
  void Enable();
  // What is noted of events up to `last`.
  void TellTable(unsigned slot, std::uint64_t last);
  void TellLine(unsigned slot, agent::LockLine& line, std::uint64_t last);
  static void ClearTable(unsigned slot);

  const std::function<std::uint64_t()> next_event_;
  const Tell tell_;
  bool started_ = false;
  std::uint64_t after_ = 0, told_ = 0;
  std::vector<std::uint32_t> acquired_;                       // by thread: since TellAll
  unsigned tables_ = 0;                                       // all threads' are before this one
  std::array<std::uint64_t, agent::kRepeatThreads> ticks_{};  // the latest that was handled
};

}  // namespace trapline
