// Hybrid: a race is a pair of conflicting accesses without a common lock that happens-before
// without lock edges does not order (O'Callahan and Choi, PPoPP 2003; AccuLock, section I-A).
#pragma once

#include <vector>

#include "detector/happens_before_detector.h"

namespace trapline {

class Hybrid final : public HappensBeforeDetector<Hybrid> {
 public:
  explicit Hybrid(const DetectorOptions& options)
      : HappensBeforeDetector(options, {}, LockEdges::kIgnore) {}

  void OnPlain(const Event& event, std::uint64_t index);
  void OnAtomic(const Event& event, std::uint64_t index, bool access_counts, bool synchronises);
  void OnSynchronise(const Event& event, std::uint64_t index);
  void CheckAgainstPlain(const Event& /*atomic*/, std::uint64_t /*index*/) {}
  void OnClear(std::uint64_t address, std::uint64_t size);
  void OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size);

  std::vector<Statistic> statistics() const override;
  std::string_view name() const override { return "hybrid"; }

 private:
  // Accesses that may race with a later one. None is made redundant by another of its thread
  // (lock-subset condition), so there are at most as many for a thread as there are incomparable
  // locksets.
  struct Cell {
    std::vector<TimedAccess> accesses;
  };

  LocksetTable locksets_;
  HeldLocks held_{&locksets_};
  ShadowMemory<Cell> shadow_;
  std::uint64_t redundant_ = 0;
  std::uint64_t accesses_ = 0;
};

}  // namespace trapline
