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
  [[gnu::always_inline]] bool OnAccess(const Event& event, std::uint64_t index, Epoch epoch,
                                       const VectorClock& clock, RaceLog* log) {
    Cell* const cell = shadow_.FindExact(event.address, event.size);
    if (cell == nullptr) [[unlikely]]
      return OnCells(event, index, epoch, clock, log);
    if (InEpoch(*cell, event, epoch)) return false;
    OnCell(*cell, event.address, event.size, event, index, epoch, clock, log);
    return true;
  }

  // The checks of an atomic access against earlier plain ones.
  void Check(const Event& atomic, std::uint64_t index, const VectorClock& clock, RaceLog* log);

  void PrefetchPage(std::uint64_t address) { shadow_.PrefetchPage(address); }
  void PrefetchCell(std::uint64_t address) { shadow_.PrefetchCell(address); }
  void PrefetchReaders(const Event& event) {
    if (const Cell* const cell = shadow_.FindExact(event.address, event.size)) cell->Prefetch();
  }

  void Clear(std::uint64_t address, std::uint64_t size) { shadow_.Clear(address, size); }
  void Copy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
    shadow_.Copy(destination, source, size);
  }

  // The rule counts of Figure 3. An access that meets several cells counts once for each.
  std::vector<Statistic> statistics() const;

 private:
  using Cell = FastTrackCell<HostAllocator>;

  // [FT READ SAME EPOCH], [FT WRITE SAME EPOCH]
  [[gnu::always_inline]] bool InEpoch(const Cell& cell, const Event& event, Epoch epoch) {
    if (event.kind == EventKind::kWrite) {
      if (!cell.WrittenInEpoch(epoch)) return false;
      ++rules_[kWriteSameEpoch];
    } else {
      if (!cell.ReadInEpoch(epoch)) return false;
      ++rules_[kReadSameEpoch];
    }
    return true;
  }
  // The other rules on the cell of [address, address+size).
  [[gnu::always_inline]] void OnCell(Cell& cell, std::uint64_t address, std::uint64_t size,
                                     const Event& event, std::uint64_t index, Epoch epoch,
                                     const VectorClock& clock, RaceLog* log) {
    const auto on_race = [&](const AccessRecord& prior, EventKind kind) {
      log->Report(prior.Unpack(kind), MakeAccess(event, index), address, size);
    };
    ++rules_[event.kind == EventKind::kWrite ? cell.Write(epoch, clock, event, index, on_race)
                                             : cell.Read(epoch, clock, event, index, on_race)];
  }
  // OnAccess for any number of cells.
  bool OnCells(const Event& event, std::uint64_t index, Epoch epoch, const VectorClock& clock,
               RaceLog* log);

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
    const auto now = synchronisation_.NowOf(event.thread);
    if (analysis_.OnAccess(event, index, now.epoch, now.clock, &race_log_)) {
      CheckAgainstAtomics(event, index);
    }
  }
  void PrefetchPage(const Event& event) { analysis_.PrefetchPage(event.address); }
  void PrefetchCell(const Event& event) { analysis_.PrefetchCell(event.address); }
  void PrefetchReaders(const Event& event) { analysis_.PrefetchReaders(event); }
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
