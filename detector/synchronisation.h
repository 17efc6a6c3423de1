// The happens-before bookkeeping that all vector-clock detectors share: a clock for each thread,
// lock, barrier and key, updated as FastTrack's Figure 4 says (and extended to reader-writer locks,
// barriers, signal/wait keys and C++ atomics).
//
// How clocks are copied, joined and incremented is a policy (`Clocks`), because PACER redefines
// just these three operations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "detector/barrier_rounds.h"
#include "detector/event.h"
#include "detector/vector_clock.h"

namespace trapline {

// The clock operations of GENERIC, DJIT+ and FastTrack.
struct PlainClocks {
  struct ThreadClock {
    VectorClock clock;
    ThreadId thread = 0;
  };
  using ObjectClock = VectorClock;

  static const VectorClock& ClockOf(const ThreadClock& thread) { return thread.clock; }
  // E_t, in which the thread is since its last release.
  static Epoch EpochOf(const ThreadClock& thread) {
    return {thread.thread, thread.clock[thread.thread]};
  }
  // The epoch to remember with what the thread does now.
  static Epoch NowOf(const ThreadClock& thread) { return EpochOf(thread); }
  // The position in the stream, as far as clocks follow it.
  static void MoveTo(std::uint64_t /*index*/) {}

  // The first state of a thread: C_t = inc_t(⊥).
  static void Start(ThreadClock& clock, ThreadId thread) {
    clock.thread = thread;
    clock.clock.Set(thread, 1);
  }
  // C_o := C_t
  static void Copy(ObjectClock& object, ThreadClock& thread) { object = thread.clock; }
  // C_t := inc_t(C_t)
  static void Increment(ThreadClock& thread) { thread.clock.Increment(thread.thread); }
  // C_t := C_t ⊔ C_o
  static void Join(ThreadClock& thread, const ObjectClock& object) { thread.clock.Join(object); }
  static void Join(ThreadClock& thread, const ThreadClock& other) {
    thread.clock.Join(other.clock);
  }
  // C_o := C_o ⊔ C_t
  static void JoinInto(ObjectClock& object, ThreadClock& thread) { object.Join(thread.clock); }
  // The clock is never asked for again.
  static void Release(ThreadClock& thread) { thread.clock.Release(); }
};

// Which synchronisation orders threads.
enum class LockEdges : std::uint8_t {
  kOrder,   // the full happens-before relation
  kIgnore,  // without lock edges; a release still increments the clock (AccuLock, section III-A)
};

// Not thread-safe.
template <class Clocks = PlainClocks>
class Synchronisation {
 public:
  using ObjectClock = typename Clocks::ObjectClock;

  explicit Synchronisation(LockEdges lock_edges = LockEdges::kOrder) : lock_edges_(lock_edges) {}

  Clocks& clocks() { return clocks_; }
  const Clocks& clocks() const { return clocks_; }

  // C_t. Valid until the next event of a thread not seen before.
  const VectorClock& ClockOf(ThreadId thread) { return clocks_.ClockOf(StateOf(thread).clock); }

  // Whether the thread has ended, or comes after what has this epoch. That is asked by others: it
  // goes on waiting if it waits.
  bool HasEndedOrKnows(ThreadId thread, Epoch epoch) {
    const ThreadState& state = Undisturbed(thread);
    return state.ended || clocks_.ClockOf(state.clock).Covers(epoch);
  }

  // E_t, the current epoch of `thread`.
  [[gnu::always_inline]] Epoch EpochOf(ThreadId thread) { return StateOf(thread).epoch; }

  // The same for a thread that need not be doing anything, and goes on waiting if it waits.
  Epoch LatestEpochOf(ThreadId thread) { return clocks_.EpochOf(Undisturbed(thread).clock); }

  // The epoch to remember with an access that is made now.
  Epoch MomentOf(const Event& access) {
    ThreadState& state = StateOf(access.thread);
    NoteAccess(state, access);
    return clocks_.NowOf(state.clock);
  }
  // An access is remembered that was made some time ago.
  void NoteEarlierAccess(const Event& access) { NoteAccess(Undisturbed(access.thread), access); }
  // `thread` has had the accesses to [address, address+size) forgotten.
  void NoteCleared(ThreadId thread, std::uint64_t address, std::uint64_t size) {
    if constexpr (kClocksRest) {
      if (IsKnown(thread)) clocks_.NoteCleared(threads_[thread].clock, address, size);
    }
  }
  // Accesses are remembered with what others have accessed.
  void NoteCopied() {
    if constexpr (kClocksRest) clocks_.NoteCopied();
  }
  // As MomentClocks has it.
  bool InOneEpoch(ThreadId thread, Clock a, Clock b) {
    return clocks_.InOneEpoch(Undisturbed(thread).clock, a, b);
  }
  // What follows happens at this position in the stream, which never falls.
  void MoveTo(std::uint64_t index) { clocks_.MoveTo(index); }

  // Epoch and clock of the thread whose access is remembered now.
  struct Now {
    Epoch epoch;
    const VectorClock& clock;
  };
  Now NowOf(const Event& access) {
    ThreadState& state = StateOf(access.thread);
    NoteAccess(state, access);
    return {state.epoch, clocks_.ClockOf(state.clock)};
  }

  // Applies any synchronisation event but atomics.
  void Apply(const Event& event) {
    // A thread that waits may give something away all the same: what it lost is told when others
    // come for it.
    const bool gives = event.kind == EventKind::kHappensBefore;
    ThreadState& t = gives ? Undisturbed(event.thread) : StateOf(event.thread);
    switch (event.kind) {
      case EventKind::kAcquire: {  // [FT ACQUIRE]
        if (lock_edges_ == LockEdges::kIgnore) break;
        Lock& lock = LockAt(event.address);
        Join(t, lock.released);
        Join(t, lock.released_shared);
        lock.holder = event.thread;
        lock.held = true;
        break;
      }
      case EventKind::kRelease: {  // [FT RELEASE]
        if (lock_edges_ == LockEdges::kOrder) {
          Lock& lock = LockAt(event.address);
          if (lock.held && lock.holder == event.thread) {
            Copy(lock.released, t);
            lock.released_shared.Clear();
          } else {  // released by another thread than the one that took it
            JoinInto(lock.released, t);
          }
          lock.held = false;
        }
        Increment(t);
        break;
      }
      case EventKind::kAcquireShared:
        if (lock_edges_ == LockEdges::kOrder) Join(t, locks_[event.address].released);
        break;
      case EventKind::kReleaseShared:
        if (lock_edges_ == LockEdges::kOrder) JoinInto(locks_[event.address].released_shared, t);
        Increment(t);
        break;
      case EventKind::kHappensBefore:
        WithClockOf(t, [&] {
          JoinInto(keys_[event.address], t);
          Increment(t);
        });
        break;
      case EventKind::kHappensAfter:
        if (const auto found = keys_.find(event.address); found != keys_.end()) {
          Join(t, found->second);
        }
        break;
      case EventKind::kFork: {  // [FT FORK]
        const bool is_new = !IsKnown(event.other);
        if constexpr (kClocksRest) {
          if (is_new && event.other != event.thread) InheritChain(event.other, event.thread);
        }
        ThreadState& u = StateOf(event.other);
        unstarted_ -= is_new;
        ThreadState& parent = StateOf(event.thread);  // StateOf may have moved `t`
        if (&u == &parent) break;
        clocks_.Join(u.clock, parent.clock);
        ++operations_;
        Increment(parent);
        break;
      }
      case EventKind::kJoinBegin:
        if (event.other == event.thread || !MayAct(event.other)) break;
        t.waits = true;
        t.waits_for = event.other;
        t.epoch = {};
        break;
      case EventKind::kJoin: {  // [FT JOIN]
        ThreadState& u = StateOfJoined(event.other);
        ThreadState& joiner = StateOf(event.thread);
        if (&u == &joiner) break;
        WithClockOf(u, [&] {
          clocks_.Join(joiner.clock, u.clock);
          ++operations_;
          Increment(u);
          if (u.ended) clocks_.Release(u.clock);
        });
        break;
      }
      case EventKind::kThreadEnd:
        t.ended = true;
        Rest(t);
        break;
      case EventKind::kBarrierEnter: {
        const std::uint64_t round = rounds_.Enter(event.address, event.thread);
        JoinInto(barriers_[event.address][round], t);
        Increment(t);
        break;
      }
      case EventKind::kBarrierLeave: {
        std::uint64_t round = 0;
        if (!rounds_.Leave(event.address, event.thread, &round)) break;
        auto& clocks = barriers_[event.address];
        Join(t, clocks[round]);
        if (!rounds_.IsInUse(event.address, round)) clocks.erase(round);
        break;
      }
      default:
        break;
    }
  }

  // From now on the thread's later releases may be told by ReleaseLate.
  void RememberKnowledge(ThreadId thread) { clocks_.RememberKnowledge(StateOf(thread).clock); }
  // `thread` has released the lock exclusively, when its clock became `release` (MomentClocks).
  void ReleaseLate(std::uint64_t address, ThreadId thread, Clock release) {
    const ThreadState& t = Undisturbed(thread);
    if (t.ended) return;
    ++operations_;
    clocks_.JoinKnownAt(LockAt(address).released, t.clock, release);
  }

  // Hints that events of the lock at `address` follow; the second one some time after the first.
  void PrefetchLock(std::uint64_t address) const {
    if (const Lock* const lock = KnownLockAt(address)) __builtin_prefetch(lock);
  }
  void PrefetchLockClock(std::uint64_t address) const {
    if (const Lock* const lock = KnownLockAt(address)) lock->released.Prefetch();
  }

  // The acquire side of an atomic that reads from what `released` was published with.
  void AtomicAcquire(ThreadId thread, const ObjectClock& released) {
    Join(StateOf(thread), released);
  }

  // The release side: a plain store starts a new release sequence, a read-modify-write continues
  // the old.
  void AtomicRelease(ThreadId thread, ObjectClock& released, bool continues_sequence) {
    ThreadState& t = StateOf(thread);
    if (continues_sequence) {
      JoinInto(released, t);
    } else {
      Copy(released, t);
    }
  }

  // Locks and keys in [source, source+size) are at [destination, destination+size) too, as when an
  // object with a lock in it moves. Takes time in proportion to `size` or their number, whichever
  // is less.
  void CopyObjects(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
    CopyEntries(locks_, destination, source, size);
    CopyEntries(keys_, destination, source, size);
  }

  // What was published on the keys in [address, address+size) is forgotten.
  void ForgetKeys(std::uint64_t address, std::uint64_t size) {
    for (std::uint64_t at = address; at < address + size; ++at) keys_.erase(at);
  }

  // Starts a new epoch of `thread`.
  void Increment(ThreadId thread) { Increment(StateOf(thread)); }

  // Starts a new epoch of every thread.
  void IncrementAll() {
    for (ThreadState& t : threads_) {
      if (t.IsKnown()) Increment(t);
    }
  }

  // What `known` covers has been forgotten, and what was released with it. Threads that turn up all
  // the same, started by nobody or while they wait, come after it: what of it was released to them
  // cannot be told any more.
  void NoteForgotten(VectorClock known) {
    // What a thread alone knows of itself is all that is to come, too.
    for (const ThreadState& state : threads_) {
      if (!state.IsKnown()) continue;
      const Epoch now = clocks_.NowOf(state.clock);
      if (known[now.thread()] > now.clock()) known.Set(now.thread(), now.clock());
    }
    forgotten_.Join(known);
  }

  // The clock that all threads' clocks include when they do something next, and so those of all
  // threads that they may start. Who waits for the end of another one (kJoinBegin) will know by
  // then what that one knows now, and need not be asked; unless that one has ended, for what others
  // have learned since is not in its clock. Empty as soon as a thread has turned up that nobody has
  // started: there may be others. Takes time in proportion to the square of the number of threads.
  VectorClock KnownToAll() const {
    VectorClock known;
    if (unstarted_ > 1) return known;
    bool first = true;
    for (const ThreadState& state : threads_) {
      if (!state.IsKnown() || state.ended) continue;
      if (state.waits && MayAct(state.waits_for)) continue;
      const VectorClock& clock = clocks_.ClockOf(state.clock);
      if (std::exchange(first, false)) {
        known = clock;
      } else {
        known.Meet(clock);
      }
    }
    return known;
  }

  // O(n) operations on vector clocks so far.
  std::uint64_t operations() const { return operations_; }

 private:
  // The clock of a thread that has ended can be put away, and its chain handed on (MomentClocks).
  static constexpr bool kClocksRest = requires(Clocks clocks, typename Clocks::ThreadClock clock) {
    clocks.End(clock);
    clocks.Resume(clock);
    clocks.HandOn(clock, clock, ThreadId{});
  };

  // One cache line: each event asks for its thread's.
  struct alignas(64) ThreadState {
    typename Clocks::ThreadClock clock;
    // Of the clock's own component. Empty = thread not seen yet, or it is away: then its next
    // event, which asks for this, ends that (Start).
    Epoch epoch;
    bool ended = false;
    bool rests = false;  // it has ended, and its clock is away (Clocks::End)
    bool waits = false;  // for the end of `waits_for`
    ThreadId waits_for = 0;

    bool IsAway() const { return waits || rests; }
    bool IsKnown() const { return IsAway() || !epoch.empty(); }
  };
  struct Lock {
    ObjectClock released;         // L_m, by who held it exclusively
    ObjectClock released_shared;  // by readers, since then
    ThreadId holder = 0;
    bool held = false;
  };

  // Locks of late: to find one in the map takes longer than all else that an event of it does.
  struct KnownLock {
    std::uint64_t address = 0;
    Lock* lock = nullptr;
  };
  static constexpr int kKnownLockBits = 14;
  using KnownLocks = std::array<KnownLock, std::size_t{1} << kKnownLockBits>;
  static std::size_t KnownLockSlot(std::uint64_t address) {
    return address * 0x9e3779b97f4a7c15 >> (64 - kKnownLockBits);
  }
  Lock* KnownLockAt(std::uint64_t address) const {
    if (!known_locks_) return nullptr;
    const KnownLock& known = (*known_locks_)[KnownLockSlot(address)];
    return known.address == address ? known.lock : nullptr;
  }
  Lock& LockAt(std::uint64_t address) {
    if (Lock* const known = KnownLockAt(address)) return *known;
    Lock& lock = locks_[address];
    constexpr std::size_t kFew = 16;  // the table is not worth while
    if (locks_.size() <= kFew) return lock;
    if (!known_locks_) known_locks_ = std::make_unique<KnownLocks>();
    (*known_locks_)[KnownLockSlot(address)] = {address, &lock};
    return lock;
  }

  bool IsKnown(ThreadId thread) const {
    return thread < threads_.size() && threads_[thread].IsKnown();
  }
  // Whether the thread is known and has not ended.
  bool MayAct(ThreadId thread) const { return IsKnown(thread) && !threads_[thread].ended; }

  // Of a thread that does something.
  [[gnu::always_inline]] ThreadState& StateOf(ThreadId thread) {
    if (thread < threads_.size() && !threads_[thread].epoch.empty()) [[likely]]
      return threads_[thread];
    return Start(thread);
  }
  // Of any other.
  ThreadState& Undisturbed(ThreadId thread) {
    return IsKnown(thread) ? threads_[thread] : Start(thread);
  }

  // Of a thread that is joined: it does nothing if it has ended.
  ThreadState& StateOfJoined(ThreadId thread) {
    return IsKnown(thread) && threads_[thread].ended ? threads_[thread] : StateOf(thread);
  }

  // The thread is seen for the first time, or is away no longer.
  [[gnu::noinline]] ThreadState& Start(ThreadId thread) {
    if (thread >= threads_.size()) threads_.resize(std::size_t{thread} + 1);
    ThreadState& state = threads_[thread];
    if (state.rests) {
      if constexpr (kClocksRest) {
        clocks_.Resume(state.clock);
        clocks_.GoOn(state.clock, thread);
      }
      state.rests = false;
      state.epoch = clocks_.EpochOf(state.clock);
      return state;
    }
    if (!std::exchange(state.waits, false)) {
      ++unstarted_;
      clocks_.Start(state.clock, thread);
    }
    clocks_.Join(state.clock, forgotten_);
    state.epoch = clocks_.EpochOf(state.clock);
    return state;
  }

  // The thread has ended. What others ask of it leaves it at rest.
  void Rest(ThreadState& t) {
    if constexpr (kClocksRest) {
      clocks_.End(t.clock);
      t.rests = true;
      t.epoch = {};
    }
  }
  // Calls use() with the thread's clock at hand.
  template <class Use>
  void WithClockOf(ThreadState& t, Use&& use) {
    if constexpr (kClocksRest) {
      if (t.rests) clocks_.Resume(t.clock);
    }
    use();
    if (t.rests) Rest(t);
  }

  // The thread, which is not known, comes after one that has ended, if `parent` knows of such a
  // one.
  void InheritChain(ThreadId thread, ThreadId parent) {
    const std::optional<ThreadId> before = clocks_.FindEndedBefore(StateOf(parent).clock);
    if (!before) return;
    if (thread >= threads_.size()) threads_.resize(std::size_t{thread} + 1);
    ThreadState& ended = threads_[*before];
    WithClockOf(ended, [&] { clocks_.HandOn(ended.clock, threads_[thread].clock, thread); });
  }

  static void NoteAccess(ThreadState& t, const Event& access) {
    if constexpr (kClocksRest) Clocks::NoteAccess(t.clock, access);
  }

  void Increment(ThreadState& t) {
    clocks_.Increment(t.clock);
    if (!t.IsAway()) t.epoch = clocks_.EpochOf(t.clock);
  }
  void Join(ThreadState& t, const ObjectClock& object) {
    ++operations_;
    clocks_.Join(t.clock, object);
  }
  void Copy(ObjectClock& object, ThreadState& t) {
    ++operations_;
    clocks_.Copy(object, t.clock);
  }
  void JoinInto(ObjectClock& object, ThreadState& t) {
    ++operations_;
    clocks_.JoinInto(object, t.clock);
  }

  template <class Value>
  static void CopyEntries(std::unordered_map<std::uint64_t, Value>& entries,
                          std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
    std::vector<std::pair<std::uint64_t, Value>> copies;
    if (size < entries.size()) {
      for (std::uint64_t at = source; at < source + size; ++at) {
        if (const auto found = entries.find(at); found != entries.end())
          copies.emplace_back(at, found->second);
      }
    } else {
      for (const auto& [at, value] : entries) {
        if (at - source < size) copies.emplace_back(at, value);
      }
    }
    for (auto& [at, value] : copies) entries[at - source + destination] = std::move(value);
  }

  Clocks clocks_;
  LockEdges lock_edges_;
  std::vector<ThreadState> threads_;
  ObjectClock forgotten_;   // NoteForgotten
  unsigned unstarted_ = 0;  // of them are not known to have been started by another one
  std::unordered_map<std::uint64_t, Lock> locks_;  // none is ever taken out
  std::unique_ptr<KnownLocks> known_locks_;
  std::unordered_map<std::uint64_t, ObjectClock> keys_;
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, ObjectClock>> barriers_;
  BarrierRounds rounds_;
  std::uint64_t operations_ = 0;
};

}  // namespace trapline
