// What detectors remember of atomic accesses, for clocks of any kind: with their epochs, locksets
// and all that a report says of them.
#pragma once

#include <cstdint>
#include <memory>

#include "detector/access_history.h"
#include "detector/vector_clock.h"

namespace trapline {

// Keeps what HappensBeforeDetector has in its cells of atomic accesses. Not thread-safe.
template <class ObjectClock>
class TimedAtomics {
 private:
  struct Accesses {
    ObjectClock released;
    AccessHistory reads;
    AccessHistory writes;

    AccessHistory& HistoryFor(EventKind kind) { return IsWrite(kind) ? writes : reads; }
  };

 public:
  // A cell of shadow memory: of the atomic accesses to some bytes, the latest of each thread, and
  // the clock that release operations published. Of those around an atomic variable, which come to
  // be with its own, most stay empty.
  class Cell {
   public:
    Cell() = default;
    Cell(const Cell& other)
        : accesses_(other.accesses_ ? std::make_unique<Accesses>(*other.accesses_) : nullptr) {}
    Cell& operator=(const Cell& other) {
      if (this != &other) accesses_ = Cell(other).accesses_;
      return *this;
    }
    Cell(Cell&&) noexcept = default;
    Cell& operator=(Cell&&) noexcept = default;
    ~Cell() = default;

    bool empty() const { return accesses_ == nullptr; }
    // Null: the cell is empty.
    const ObjectClock* released() const { return accesses_ ? &accesses_->released : nullptr; }

   private:
    friend class TimedAtomics;
    std::unique_ptr<Accesses> accesses_;
  };

  static ObjectClock& ReleasedIn(Cell& cell) { return Get(cell).released; }

  // Makes `entry` the last read or write of its thread to the cell at `address`.
  static void Put(Cell& cell, std::uint64_t /*address*/, const TimedAccess& entry) {
    Get(cell).HistoryFor(entry.access.kind).Put(entry);
  }
  // Forgets the last one of that kind by the thread of `access`.
  static void Remove(Cell& cell, const Access& access) {
    if (!cell.empty()) cell.accesses_->HistoryFor(access.kind).Remove(access.thread);
  }

  // Calls visit(const TimedAccess&) for the writes to the cell at `address` and, if `reads`, then
  // for its reads, that did not happen before a thread has `clock`.
  template <class Visit>
  static void ForEachAfter(const VectorClock& clock, const Cell& cell, std::uint64_t /*address*/,
                           bool reads, Visit&& visit) {
    if (cell.empty()) return;
    const auto visit_those = [&](const AccessHistory& history) {
      for (const TimedAccess& prior : history) {
        if (!clock.Covers(prior.epoch)) visit(prior);
      }
    };
    visit_those(cell.accesses_->writes);
    if (reads) visit_those(cell.accesses_->reads);
  }

  // The cell of `to` is a copy of the one of `from`.
  static void Move(Cell& /*cell*/, std::uint64_t /*to*/, std::uint64_t /*from*/) {}

  // Whether it is time to call Collect with the shadow memory of all cells that there are.
  static bool WantsCollection() { return false; }
  template <class Shadow>
  static void Collect(Shadow& /*shadow*/) {}

 private:
  static Accesses& Get(Cell& cell) {
    if (!cell.accesses_) cell.accesses_ = std::make_unique<Accesses>();
    return *cell.accesses_;
  }
};

}  // namespace trapline
