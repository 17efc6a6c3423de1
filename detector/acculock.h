// AccuLock: happens-before without lock edges, and locksets that tell reads from writes
// (Xie and Xue, CGO 2011).
#pragma once

#include "detector/happens_before_detector.h"

namespace trapline {

class AccuLock final : public HappensBeforeDetector<AccuLock> {
 public:
  static constexpr bool kOrdersByRule = true;

  explicit AccuLock(const DetectorOptions& options)
      : HappensBeforeDetector(options, {}, LockEdges::kIgnore) {}

  void OnPlain(const Event& event, std::uint64_t index);
  void OnSynchronise(const Event& event, std::uint64_t index);
  void CheckAgainstPlain(const Event& atomic, std::uint64_t index);
  void OnClear(std::uint64_t address, std::uint64_t size);
  void OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size);

  LocksetId LocksetOf(const Event& event) { return held_.ForPair(event); }
  bool Unprotected(const TimedAccess& prior, const Event& event) {
    return locksets_.Disjoint(prior.lockset, held_.ForPair(event));
  }

  std::vector<Statistic> statistics() const override;
  std::string_view name() const override { return "acculock"; }

 private:
  struct Cell {
    AccessHistory reads;  // R_x: epoch and lockset of each thread's last read
    TimedAccess write;    // W_x: epoch of the last write; lockset common to all concurrent writes
  };

  void Read(const Event& event, std::uint64_t index);
  void Write(const Event& event, std::uint64_t index);

  LocksetTable locksets_;
  HeldLocks held_{&locksets_};
  ShadowMemory<Cell> shadow_;
  std::uint64_t same_epoch_ = 0;
  std::uint64_t accesses_ = 0;
};

}  // namespace trapline
