// What detectors over MomentClocks remember of atomic accesses: a record of eight bytes for each.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "detector/access_history.h"
#include "detector/access_places.h"
#include "detector/block_pool.h"
#include "detector/detector_base.h"
#include "detector/moment_clocks.h"
#include "detector/record_history.h"

namespace trapline {

// Offers what TimedAtomics does, without locksets. Must outlive its cells. Should more places be in
// use at once than there are numbers, accesses of further ones are not remembered. Not thread-safe.
class MomentAtomics {
 private:
  struct Accesses {
    VectorClock released;
    RecordHistory reads;
    RecordHistory writes;

    RecordHistory& HistoryFor(EventKind kind) { return IsWrite(kind) ? writes : reads; }
  };
  static_assert(std::has_single_bit(sizeof(Accesses)));

 public:
  explicit MomentAtomics(std::size_t most_places = std::size_t{1} << kPlaceBits)
      : places_(most_places) {}

  class Cell {
   public:
    Cell() = default;
    Cell(const Cell& other) {
      if (!other.empty())
        accesses_ = new (BlockPool::AllocateBeside(other.accesses_, sizeof(Accesses)))
            Accesses(*other.accesses_);
    }
    Cell& operator=(const Cell& other) {
      if (this != &other) {
        Cell copy(other);
        std::swap(accesses_, copy.accesses_);
      }
      return *this;
    }
    Cell(Cell&& other) noexcept : accesses_(std::exchange(other.accesses_, nullptr)) {}
    Cell& operator=(Cell&& other) noexcept {
      std::swap(accesses_, other.accesses_);
      return *this;
    }
    ~Cell() {
      if (empty()) return;
      std::destroy_at(accesses_);
      BlockPool::Free(accesses_, sizeof(Accesses));
    }

    bool empty() const { return accesses_ == nullptr; }
    const VectorClock* released() const { return empty() ? nullptr : &accesses_->released; }

    // Hints, the second some time after the first, that they are looked at soon.
    void Prefetch() const { __builtin_prefetch(accesses_, 1); }
    void PrefetchMore() const {
      if (empty()) return;
      accesses_->released.Prefetch();
      accesses_->reads.Prefetch();
      accesses_->writes.Prefetch();
    }

   private:
    friend class MomentAtomics;
    Accesses* accesses_ = nullptr;  // in memory_
  };

  VectorClock& ReleasedIn(Cell& cell) { return Get(cell).released; }

  // Whether whoever has that clock comes after all accesses, and all that was released by them.
  bool IsCoveredBy(const Cell& cell, const VectorClock& clock) const {
    if (cell.empty()) return true;
    bool covered = true;
    const auto look = [&](const AccessRecord& record) {
      covered = covered && Covers(clock, record);
    };
    cell.accesses_->reads.ForEach(look);
    cell.accesses_->writes.ForEach(look);
    return covered && clock.Covers(cell.accesses_->released);
  }

  // The epoch of `entry` is its moment.
  void Put(Cell& cell, std::uint64_t address, const TimedAccess& entry) {
    const PlaceId place =
        places_.IdOf(AccessPlace::MakeAtomic(entry.access, WordOf(address)), entry.epoch.thread());
    if (place == 0) [[unlikely]]
      return;
    Get(cell)
        .HistoryFor(entry.access.kind)
        .Put(memory_, AccessRecord(entry.epoch.clock(), place),
             [this](const AccessRecord& record) { return ChainOf(record); });
  }
  void Remove(Cell& cell, const Access& access) const {
    if (cell.empty()) return;
    cell.accesses_->HistoryFor(access.kind).Transform([&](const AccessRecord& record) {
      return places_[record.place()].thread == access.thread ? AccessRecord() : record;
    });
  }

  template <class Visit>
  void ForEachAfter(const VectorClock& clock, const Cell& cell, std::uint64_t address, bool reads,
                    Visit&& visit) const {
    if (cell.empty()) return;
    const auto visit_those = [&](const RecordHistory& history) {
      history.ForEach([&](const AccessRecord& record) {
        if (!Covers(clock, record)) visit(Unpack(record, address));
      });
    };
    visit_those(cell.accesses_->writes);
    if (reads) visit_those(cell.accesses_->reads);
  }

  void Move(Cell& cell, std::uint64_t to, std::uint64_t from) {
    const std::uint64_t distance = WordOf(to) - WordOf(from);
    if (cell.empty() || distance == 0) return;
    Transform(cell, [&](const AccessRecord& record) {
      AccessPlace place = places_[record.place()];
      place.Move(distance);
      const PlaceId id = places_.IdOf(place, ChainOf(record));
      return id == 0 ? AccessRecord() : AccessRecord(record.moment(), id);
    });
  }

  bool WantsCollection() const { return places_.WantsCollection(); }
  template <class Shadow>
  void Collect(Shadow& shadow) {
    std::vector<bool> used(places_.id_limit());
    shadow.ForEachExisting(0, kTopOfMemory, [&](Cell& cell, std::uint64_t, std::uint64_t) {
      if (cell.empty()) return;
      Transform(cell, [&](const AccessRecord& record) {
        used[record.place()] = true;
        return record;
      });
    });
    places_.Collect(used);
  }

 private:
  static std::uint64_t WordOf(std::uint64_t address) { return address & ~std::uint64_t{7}; }

  Accesses& Get(Cell& cell) {
    if (cell.empty()) cell.accesses_ = new (memory_.Allocate(sizeof(Accesses))) Accesses();
    return *cell.accesses_;
  }
  template <class Change>
  static void Transform(Cell& cell, Change&& change) {
    cell.accesses_->reads.Transform(change);
    cell.accesses_->writes.Transform(change);
  }
  ThreadId ChainOf(const AccessRecord& record) const { return places_.ChainOf(record.place()); }
  bool Covers(const VectorClock& clock, const AccessRecord& record) const {
    return record.moment() <= clock[ChainOf(record)];
  }
  TimedAccess Unpack(const AccessRecord& record, std::uint64_t address) const {
    const AccessPlace& place = places_[record.place()];
    return {.epoch = Epoch(ChainOf(record), record.moment()),
            .access = place.AccessAt(MomentClocks::PositionOf(record.moment()), place.atomic_kind(),
                                     WordOf(address))};
  }

  BlockPool memory_;
  AccessPlaces places_;
};

}  // namespace trapline
