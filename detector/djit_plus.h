// DJIT+: vector clocks, but only the first access of each epoch is checked (FastTrack, section 2.2
// and the right column of its Figure 3).
#pragma once

#include "detector/happens_before_detector.h"

namespace trapline {

class DjitPlus final : public HappensBeforeDetector<DjitPlus> {
 public:
  using HappensBeforeDetector::HappensBeforeDetector;

  void OnPlain(const Event& event, std::uint64_t index);
  void CheckAgainstPlain(const Event& atomic, std::uint64_t index);
  void OnClear(std::uint64_t address, std::uint64_t size);
  void OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size);

  std::vector<Statistic> statistics() const override;
  std::string_view name() const override { return "djit+"; }

 private:
  struct Cell {
    AccessHistory reads;   // R_x
    AccessHistory writes;  // W_x
  };

  void Check(const AccessHistory& history, const Event& event, std::uint64_t index,
             std::uint64_t address, std::uint64_t size);

  ShadowMemory<Cell> shadow_;
  std::uint64_t read_same_epoch_ = 0;
  std::uint64_t reads_ = 0;
  std::uint64_t write_same_epoch_ = 0;
  std::uint64_t writes_ = 0;
};

}  // namespace trapline
