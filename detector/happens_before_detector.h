// What the detectors over vector clocks have in common: thread and lock clocks, and atomic
// accesses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "detector/access_history.h"
#include "detector/atomic_accesses.h"
#include "detector/detector_base.h"
#include "detector/line_set.h"
#include "detector/shadow_memory.h"
#include "detector/synchronisation.h"

namespace trapline {

// Derived provides what DetectorBase asks for but OnAtomic and OnSynchronise, and
//   void CheckAgainstPlain(const Event& atomic, std::uint64_t index)
//     reports the races of an atomic access with earlier plain accesses;
// it calls CheckAgainstAtomics for its plain accesses, FollowOthers before and OrderByRule after
// they were checked. It may hide RecordsAtomics, LocksetOf and Unprotected.
//
// Atomic accesses never race with one another. They synchronise by their memory order: a store with
// release order starts a release sequence, a read-modify-write continues it, and a load with
// acquire order joins what the bytes it reads were published with. A relaxed store publishes
// nothing and (unlike in C++20, 6.9.2.2) does not end an earlier sequence, since a fence that would
// restore the order is not seen.
//
// AtomicMemory says what is remembered of them: TimedAtomics or what offers the same.
template <class Derived, class Clocks = PlainClocks,
          class AtomicMemory = TimedAtomics<typename Clocks::ObjectClock>>
class HappensBeforeDetector : public DetectorBase<Derived> {
 public:
  explicit HappensBeforeDetector(const DetectorOptions& options,
                                 const RuntimeInterface& interface = {},
                                 LockEdges lock_edges = LockEdges::kOrder)
      : DetectorBase<Derived>(options, interface), synchronisation_(lock_edges) {}

  void OnSynchronise(const Event& event, std::uint64_t index) {
    synchronisation_.MoveTo(index);
    synchronisation_.Apply(event);
  }

  void OnCleared(const Event& event) {
    synchronisation_.NoteCleared(event.thread, event.address, event.size);
  }

  void OnAtomic(const Event& event, std::uint64_t index, bool access_counts,
                bool synchronisation_counts) {
    synchronisation_.MoveTo(index);
    // The synchronising store happens before the load that reads from it: join first, then check.
    if (synchronisation_counts) AtomicAcquire(event);
    if (access_counts) {
      FollowOthers(event, index);
      derived().CheckAgainstPlain(event, index);
      OrderByRule(index);
      RecordAtomic(event, index);
    }
    if (synchronisation_counts) AtomicRelease(event);
  }

  // Orders the threads whose accesses the ordering rule has just taken for synchronisation.
  void OrderByRule(std::uint64_t index) {
    if (!this->race_log_.ordering().empty()) [[unlikely]]
      OrderThose(index);
  }
  // The access is about to be checked.
  void FollowOthers(const Event& access, std::uint64_t index) {
    if (!followed_.empty()) [[unlikely]]
      Follow(access, index);
  }

  // Reports the races of a plain access with earlier atomic ones, but for those of threads that
  // `knows` of it.
  template <class Knows>
  [[gnu::always_inline]] void CheckAgainstAtomics(const Event& event, std::uint64_t index,
                                                  Knows&& knows) {
    if (!atomics_.empty()) [[unlikely]]
      CheckAgainstThose(event, index, knows);
  }
  [[gnu::always_inline]] void CheckAgainstAtomics(const Event& event, std::uint64_t index) {
    CheckAgainstAtomics(event, index, [](ThreadId) { return false; });
  }

  // As DetectorBase has them.
  void PrefetchPast(const Event& event) const {
    if (const Atomics* const cell = FindAtomicCell(event)) cell->Prefetch();
  }
  void PrefetchMoreOfPast(const Event& event) const {
    if (const Atomics* const cell = FindAtomicCell(event)) cell->PrefetchMore();
  }

 protected:
  using Atomics = typename AtomicMemory::Cell;

  // Whether atomic accesses are remembered now; if not, those of the same thread are forgotten.
  bool RecordsAtomics() const { return true; }
  // The lockset to remember with an atomic access, and whether it leaves `event` unprotected from
  // `prior`.
  LocksetId LocksetOf(const Event& /*event*/) { return kEmptyLockset; }
  bool Unprotected(const TimedAccess& /*prior*/, const Event& /*event*/) { return true; }

  // Hints, one after the other, that an access will be looked for among the atomic ones soon, and
  // then PrefetchPast and PrefetchMoreOfPast.
  void PrefetchAtomicPage(const Event& event) const { atomics_.PrefetchPage(event.address); }
  void PrefetchAtomicLine(const Event& event) {
    __builtin_prefetch(atomics_.FindLine(event.address));
  }
  void PrefetchAtomicCell(const Event& event) {
    atomics_.PrefetchCells(atomics_.FindLine(event.address), event.address, event.size);
  }

  // The same for events of locks.
  void PrefetchLock(const Event& event) const {
    if (IsAboutLock(event)) synchronisation_.PrefetchLock(event.address);
  }
  void PrefetchLockClock(const Event& event) const {
    if (IsAboutLock(event)) synchronisation_.PrefetchLockClock(event.address);
  }

  // The two sides of an atomic access as synchronisation, as far as its kind and order have them.
  void AtomicAcquire(const Event& event) {
    if (event.kind == EventKind::kAtomicWrite || !Acquires(event.order)) return;
    atomics_.ForEachExisting(event.address, event.size,
                             [&](Atomics& cell, std::uint64_t, std::uint64_t) {
                               if (const auto* const released = cell.released())
                                 synchronisation_.AtomicAcquire(event.thread, *released);
                             });
  }
  void AtomicRelease(const Event& event) {
    if (event.kind == EventKind::kAtomicRead || !Releases(event.order)) return;
    const bool continues_sequence = event.kind == EventKind::kAtomicRmw;
    atomic_lines_.Add(event.address, event.size);
    atomics_.ForEach(event.address, event.size, [&](Atomics& cell, std::uint64_t, std::uint64_t) {
      synchronisation_.AtomicRelease(event.thread, atomic_memory_.ReleasedIn(cell),
                                     continues_sequence);
    });
    synchronisation_.Increment(event.thread);
  }

  void RecordAtomic(const Event& event, std::uint64_t index) {
    const TimedAccess entry{synchronisation_.MomentOf(event), derived().LocksetOf(event),
                            MakeAccess(event, index)};
    atomic_lines_.Add(event.address, event.size);
    if (atomic_memory_.WantsCollection()) atomic_memory_.Collect(atomics_);
    atomics_.ForEach(event.address, event.size,
                     [&](Atomics& cell, std::uint64_t address, std::uint64_t) {
                       if (derived().RecordsAtomics()) {
                         atomic_memory_.Put(cell, address, entry);
                       } else {
                         atomic_memory_.Remove(cell, entry.access);
                       }
                     });
  }

  void ClearAtomics(std::uint64_t address, std::uint64_t size) {
    if (address >= kFirstMereKey) synchronisation_.ForgetKeys(address, size);
    if (!atomic_lines_.MayTouch(address, size)) return;
    atomics_.Clear(address, size);
    if (atomics_.empty()) atomic_lines_.Clear();
  }
  // What `known` covers, a clock that those of all threads include that may do something, can
  // neither race with what they do nor order it.
  void ForgetAtomics(const VectorClock& known) {
    atomics_.Forget([&](const Atomics& cell) { return atomic_memory_.IsCoveredBy(cell, known); });
    if (atomics_.empty()) atomic_lines_.Clear();
  }
  void CopyAtomics(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
    synchronisation_.NoteCopied();
    synchronisation_.CopyObjects(destination, source, size);
    if (atomics_.empty()) return;
    atomic_lines_.Add(destination, size);
    atomics_.Copy(destination, source, size,
                  [&](Atomics& cell, std::uint64_t to, std::uint64_t from) {
                    atomic_memory_.Move(cell, to, from);
                  });
  }

  // Two threads synchronise by accesses that count as plain. How often they did so before, and will
  // until those accesses are told as atomic ones, is not known, for of what a thread repeats in its
  // epoch not all is told: meanwhile who may read comes after all that the other has done. Where
  // each read is told, it comes after that only when it reads.
  struct Followed {
    ThreadId thread, other;
    std::uint64_t polled;  // by atomic reads; 0: any access may be one that reads
    unsigned left;         // accesses of `thread`
    bool has_read = true;  // such a read was told of before it was made, and saw the write
  };
  // More than what is queued of a thread.
  static constexpr unsigned kFollows = 1 << 14;

  Synchronisation<Clocks> synchronisation_;
  AtomicMemory atomic_memory_;
  ShadowMemory<Atomics> atomics_;
  LineSet atomic_lines_;  // where atomics_ may have something

 private:
  Derived& derived() { return static_cast<Derived&>(*this); }

  static bool IsAboutLock(const Event& event) {
    return IsOfLock(event.kind) || event.kind == EventKind::kLateRelease;
  }
  // Null: the event is no atomic access, or the first one there.
  const Atomics* FindAtomicCell(const Event& event) const {
    if (!IsAtomic(event.kind)) return nullptr;
    return atomics_.FindCells(atomics_.FindLine(event.address), event.address, event.size);
  }

  template <class Knows>
  [[gnu::noinline]] void CheckAgainstThose(const Event& event, std::uint64_t index, Knows& knows) {
    if (!atomic_lines_.MayTouch(event.address, event.size)) return;
    const VectorClock& clock = synchronisation_.ClockOf(event.thread);
    atomics_.ForEachExisting(
        event.address, event.size, [&](Atomics& cell, std::uint64_t address, std::uint64_t size) {
          atomic_memory_.ForEachAfter(
              clock, cell, address, event.kind == EventKind::kWrite, [&](const TimedAccess& prior) {
                if (derived().Unprotected(prior, event) && !knows(prior.access.thread))
                  this->race_log_.Report(prior.access, MakeAccess(event, index), address, size);
              });
        });
  }

  // `thread` comes after all that `other` has done.
  void OrderAfter(ThreadId thread, ThreadId other) {
    constexpr std::uint64_t kKeys = std::uint64_t{0x7c} << 56;
    Event event{};
    event.kind = EventKind::kHappensBefore;
    event.thread = other;
    event.address = kKeys | other;
    synchronisation_.Apply(event);
    event.kind = EventKind::kHappensAfter;
    event.thread = thread;
    synchronisation_.Apply(event);
  }

  [[gnu::noinline]] void OrderThose(std::uint64_t index) {
    synchronisation_.MoveTo(index);
    const auto may_see = [](const Access& one, const Access& other) {
      return IsWrite(other.kind) && one.kind != EventKind::kWrite &&
             one.kind != EventKind::kAtomicWrite;
    };
    for (const auto& [first, second, meeting] : this->race_log_.ordering()) {
      const bool mutual = meeting == Meeting::kMutualOrder;
      const std::uint64_t polled = meeting == Meeting::kPolled ? second.address : 0;
      if (may_see(second, first)) OrderAfter(second.thread, first.thread);
      if (mutual || may_see(second, first)) StartFollowing(second.thread, first.thread, polled);
      if (mutual || may_see(first, second)) StartFollowing(first.thread, second.thread, polled);
    }
    this->race_log_.ClearOrdering();
  }

  void StartFollowing(ThreadId thread, ThreadId other, std::uint64_t polled) {
    constexpr std::ptrdiff_t kMostPolled = 16;
    const auto is_of_both = [&](const Followed& followed) {
      return followed.thread == thread && followed.other == other;
    };
    if (polled != 0 &&
        std::count_if(followed_.begin(), followed_.end(), is_of_both) == kMostPolled) {
      polled = 0;
    }
    std::erase_if(followed_, [&](const Followed& followed) {
      return is_of_both(followed) && (polled == 0 || followed.polled == polled);
    });
    followed_.push_back({thread, other, polled, kFollows});
  }

  [[gnu::noinline]] void Follow(const Event& access, std::uint64_t index) {
    synchronisation_.MoveTo(index);
    for (Followed& followed : followed_) {
      if (followed.thread != access.thread) continue;
      const bool reads = followed.polled == 0 || (access.kind == EventKind::kAtomicRead &&
                                                  access.address == followed.polled);
      if (reads || followed.has_read) OrderAfter(access.thread, followed.other);
      followed.has_read = false;
      --followed.left;
    }
    std::erase_if(followed_, [](const Followed& followed) { return followed.left == 0; });
  }

  std::vector<Followed> followed_;
};

}  // namespace trapline
