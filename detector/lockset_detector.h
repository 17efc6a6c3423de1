// What the pure lockset detectors have in common: they follow held locks and ignore all other
// order.
#pragma once

#include "detector/access_history.h"
#include "detector/detector_base.h"
#include "detector/lockset.h"
#include "detector/shadow_memory.h"

namespace trapline {

// Derived provides a copyable Cell with
//   bool OnAccess(const Event&, LocksetId, LocksetTable*)   whether the access violates the
//   discipline
// An atomic access holds the bus lock besides the thread's own.
template <class Derived, class CellState>
class LocksetDetector : public DetectorBase<Derived> {
 public:
  using DetectorBase<Derived>::DetectorBase;

  void OnPlain(const Event& event, std::uint64_t index) {
    const LocksetId lockset = held_.For(event);
    const TimedAccess now{Epoch(event.thread, 1), lockset, MakeAccess(event, index)};
    shadow_.ForEach(event.address, event.size,
                    [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
                      if (cell.state.OnAccess(event, lockset, &table_)) {
                        if (const Access* other = cell.last.LatestConflict(now.access)) {
                          this->race_log_.Report(*other, now.access, address, size);
                        }
                      }
                      cell.last.Put(now);
                    });
  }
  void OnAtomic(const Event& event, std::uint64_t index, bool access_counts,
                bool /*synchronises*/) {
    if (access_counts) OnPlain(event, index);
  }
  void OnSynchronise(const Event& event, std::uint64_t /*index*/) { held_.Apply(event); }
  void OnClear(std::uint64_t address, std::uint64_t size) { shadow_.Clear(address, size); }
  void OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
    shadow_.Copy(destination, source, size);
  }

  std::vector<Statistic> statistics() const override {
    return {{"lockset operations", table_.operations()},
            {"lockset operations computed", table_.computed(), table_.operations()}};
  }

 private:
  struct Cell {
    CellState state;
    LastAccesses last;
  };

  LocksetTable table_;
  HeldLocks held_{&table_};
  ShadowMemory<Cell> shadow_;
};

}  // namespace trapline
