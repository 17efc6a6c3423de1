// BasicVC: vector clocks for everything, checked at every access (FastTrack, section 2.2). Slow and
// simple, the oracle for the others' verdicts.
#pragma once

#include "detector/happens_before_detector.h"

namespace trapline {

class BasicVc final : public HappensBeforeDetector<BasicVc> {
 public:
  using HappensBeforeDetector::HappensBeforeDetector;

  void OnPlain(const Event& event, std::uint64_t index);
  void CheckAgainstPlain(const Event& atomic, std::uint64_t index);
  void OnClear(std::uint64_t address, std::uint64_t size);
  void OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size);

  std::vector<Statistic> statistics() const override;
  std::string_view name() const override { return "basicvc"; }

 private:
  struct Cell {
    AccessHistory reads;   // R_x
    AccessHistory writes;  // W_x
  };

  void Check(const AccessHistory& history, const Event& event, std::uint64_t index,
             std::uint64_t address, std::uint64_t size);

  ShadowMemory<Cell> shadow_;
  std::uint64_t comparisons_ = 0;
};

}  // namespace trapline
