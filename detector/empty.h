// Empty: no analysis at all, the cost of the event stream alone (FastTrack and AccuLock, section
// 4).
#pragma once

#include "detector/detector_base.h"

namespace trapline {

class Empty final : public DetectorBase<Empty> {
 public:
  using DetectorBase::DetectorBase;

  void OnPlain(const Event& event, std::uint64_t /*index*/) {
    ++(event.kind == EventKind::kWrite ? writes_ : reads_);
  }
  void OnAtomic(const Event&, std::uint64_t, bool, bool) { ++atomics_; }
  void OnSynchronise(const Event&, std::uint64_t) { ++synchronisations_; }
  void OnClear(std::uint64_t, std::uint64_t) {}
  void OnCopy(std::uint64_t, std::uint64_t, std::uint64_t) {}

  std::vector<Statistic> statistics() const override;
  std::string_view name() const override { return "empty"; }

 private:
  std::uint64_t reads_ = 0;
  std::uint64_t writes_ = 0;
  std::uint64_t atomics_ = 0;
  std::uint64_t synchronisations_ = 0;
};

}  // namespace trapline
