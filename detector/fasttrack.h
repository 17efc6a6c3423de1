// FastTrack: precise happens-before detection with epochs in place of most vector clocks
// (Flanagan and Freund, PLDI 2009).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "detector/fasttrack_core.h"
#include "detector/happens_before_detector.h"

namespace trapline {

// Shadow memory under the FastTrack rules, with their counts. Shared by FastTrack and the detectors
// that sample in front of it.
class FastTrackAnalysis {
 public:
  // A plain access of the thread with clock C_t in its epoch E_t. Returns false if every cell was
  // already accessed in this epoch, so that there was nothing to check.
  bool OnAccess(const Event& event, std::uint64_t index, Epoch epoch, const VectorClock& clock,
                RaceLog* log) {
    bool checked = false;
    const bool is_write = event.kind == EventKind::kWrite;
    shadow_.ForEach(event.address, event.size,
                    [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
                      if (is_write ? cell.WrittenInEpoch(epoch) : cell.ReadInEpoch(epoch)) {
                        ++rules_[is_write ? kWriteSameEpoch : kReadSameEpoch];
                        return;
                      }
                      checked = true;
                      const auto on_race = [&](const AccessRecord& prior, EventKind kind) {
                        log->Report(prior.Unpack(kind), MakeAccess(event, index), address, size);
                      };
                      ++rules_[is_write ? cell.Write(epoch, clock, event, index, on_race)
                                        : cell.Read(epoch, clock, event, index, on_race)];
                    });
    return checked;
  }

  // The checks of an atomic access against earlier plain ones.
  void Check(const Event& atomic, std::uint64_t index, const VectorClock& clock, RaceLog* log);

  void Clear(std::uint64_t address, std::uint64_t size) { shadow_.Clear(address, size); }
  void Copy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
    shadow_.Copy(destination, source, size);
  }

  // The rule counts of Figure 3. An access that meets several cells counts once for each.
  std::vector<Statistic> statistics() const;

 private:
  using Cell = FastTrackCell<HostAllocator>;

  ShadowMemory<Cell> shadow_;
  std::array<std::uint64_t, kFastTrackRules> rules_{};
};

class FastTrack final : public HappensBeforeDetector<FastTrack> {
 public:
  // `name` is what name() answers (LARD's ablations are FastTrack behind other interfaces); a
  // literal.
  explicit FastTrack(const DetectorOptions& options, const RuntimeInterface& interface = {},
                     std::string_view name = "fasttrack")
      : HappensBeforeDetector(options, interface), name_(name) {}

  void OnPlain(const Event& event, std::uint64_t index) {
    const Epoch epoch = synchronisation_.EpochOf(event.thread);
    if (analysis_.OnAccess(event, index, epoch, synchronisation_.ClockOf(event.thread),
                           &race_log_)) {
      CheckAgainstAtomics(event, index);
    }
  }
  void CheckAgainstPlain(const Event& atomic, std::uint64_t index) {
    analysis_.Check(atomic, index, synchronisation_.ClockOf(atomic.thread), &race_log_);
  }
  void OnClear(std::uint64_t address, std::uint64_t size);
  void OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size);

  std::vector<Statistic> statistics() const override;
  std::string_view name() const override { return name_; }

 private:
  FastTrackAnalysis analysis_;
  std::string_view name_;
};

}  // namespace trapline
