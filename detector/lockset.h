// Sets of locks, each distinct set stored once (Eraser's lockset table): a set is a small number,
// equality is equality of numbers, and intersections are remembered.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "detector/event.h"

namespace trapline {

using LockId = std::uint64_t;     // address of the lock
using LocksetId = std::uint32_t;  // index into a LocksetTable
inline constexpr LocksetId kEmptyLockset = 0;

// Stands in every atomic access's lockset: the bus lock that all atomic accesses share, so that
// they never race with one another but do with plain accesses. Not an address of any program.
inline constexpr LockId kBusLock = ~LockId{0};
// The fake lock of all reads (LOCKSET, AccuLock's Figure 3): keeps concurrent reads apart from
// writes.
inline constexpr LockId kReadersLock = ~LockId{1};

// A lock that is held on its shared side protects from who holds it exclusively, but not from who
// holds it shared, too. A set has one of the two.
inline constexpr LockId kSharedSide = LockId{1} << 63;
constexpr LockId SharedSideOf(LockId lock) { return lock | kSharedSide; }
constexpr bool IsSharedSide(LockId lock) {
  return (lock & kSharedSide) != 0 && lock < kReadersLock;
}

// Not thread-safe. Ids stay valid for the table's life.
class LocksetTable {
 public:
  LocksetTable();

  LocksetId Add(LocksetId set, LockId lock);
  LocksetId Remove(LocksetId set, LockId lock);
  // What both protect from: of a lock that one has shared its shared side.
  LocksetId Intersect(LocksetId a, LocksetId b);
  // Whether `b` protects from whatever `a` does.
  bool IsSubset(LocksetId a, LocksetId b) { return Intersect(a, b) == a; }
  // Whether no lock protects accesses under the one from those under the other.
  bool Disjoint(LocksetId a, LocksetId b);

  // The locks of a set in ascending order; valid until the next new set.
  std::span<const LockId> Locks(LocksetId set) const { return *sets_[set]; }

  // Set operations asked for, and those that were not answered from memory.
  std::uint64_t operations() const { return operations_; }
  std::uint64_t computed() const { return computed_; }

 private:
  LocksetId Intern(std::vector<LockId> locks);
  bool Has(LocksetId set, LockId lock) const;

  std::map<std::vector<LockId>, LocksetId> ids_;
  std::vector<const std::vector<LockId>*> sets_;
  std::unordered_map<std::uint64_t, LocksetId> intersections_;
  std::uint64_t operations_ = 0;
  std::uint64_t computed_ = 0;
};

// The locks each thread holds now. What a lock protects depends on how it is held (Eraser,
// section 2.2): a reader-writer lock held on its shared side protects reads only. Not thread-safe.
class HeldLocks {
 public:
  explicit HeldLocks(LocksetTable* table) : table_(table) {}

  // Follows kAcquire, kRelease and their shared sides; ignores other events. A lock may be taken
  // repeatedly.
  void Apply(const Event& event);

  // What protects an access of `thread` from another one: each lock by the side that is held. For
  // detectors that look at pairs.
  LocksetId ForPair(const Event& access) {
    const LocksetId set = StateOf(access.thread).sides;
    return IsAtomic(access.kind) ? table_->Add(set, kBusLock) : set;
  }

  // L_t for a read, a write, or an atomic access of `thread`: for those who look for a lock that is
  // held at all accesses.
  LocksetId ForRead(ThreadId thread) { return StateOf(thread).any; }
  LocksetId ForWrite(ThreadId thread) { return StateOf(thread).exclusive; }
  LocksetId For(const Event& access) {
    const LocksetId set = IsWrite(access.kind) ? ForWrite(access.thread) : ForRead(access.thread);
    return IsAtomic(access.kind) ? table_->Add(set, kBusLock) : set;
  }

 private:
  struct Held {
    std::uint32_t exclusive = 0;  // how often
    std::uint32_t shared = 0;
  };
  struct ThreadState {
    LocksetId any = kEmptyLockset;        // held in any mode
    LocksetId exclusive = kEmptyLockset;  // held exclusively
    LocksetId sides = kEmptyLockset;      // held in any mode, by sides
    std::map<LockId, Held> held;
  };

  ThreadState& StateOf(ThreadId thread) {
    if (thread >= threads_.size()) threads_.resize(std::size_t{thread} + 1);
    return threads_[thread];
  }

  LocksetTable* table_;
  std::vector<ThreadState> threads_;
};

}  // namespace trapline
