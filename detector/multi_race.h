// MultiRace: DJIT+ whose vector clocks are compared only once Eraser's lockset is empty
// (Pozniansky and Schuster, 2007; AccuLock, section I-A).
#pragma once

#include "detector/eraser_state.h"
#include "detector/happens_before_detector.h"

namespace trapline {

class MultiRace final : public HappensBeforeDetector<MultiRace> {
 public:
  using HappensBeforeDetector::HappensBeforeDetector;

  void OnPlain(const Event& event, std::uint64_t index) { OnAccess(event, index); }
  void OnAtomic(const Event& event, std::uint64_t index, bool access_counts, bool synchronises);
  void OnSynchronise(const Event& event, std::uint64_t index);
  void CheckAgainstPlain(const Event& /*atomic*/, std::uint64_t /*index*/) {}
  void OnClear(std::uint64_t address, std::uint64_t size);
  void OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size);

  std::vector<Statistic> statistics() const override;
  std::string_view name() const override { return "multirace"; }

 private:
  // R_x and W_x for plain and for atomic accesses, which do not race among themselves.
  struct Cell {
    EraserState lockset;
    AccessHistory reads, writes, atomic_reads, atomic_writes;
  };

  void OnAccess(const Event& event, std::uint64_t index);

  LocksetTable locksets_;
  HeldLocks held_{&locksets_};
  ShadowMemory<Cell> shadow_;
  std::uint64_t same_epoch_ = 0;
  std::uint64_t accesses_ = 0;
  std::uint64_t compared_ = 0;
};

}  // namespace trapline
