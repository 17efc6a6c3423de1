// FastTrack: precise happens-before detection with epochs in place of most vector clocks
// (Flanagan and Freund, PLDI 2009).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "detector/access_places.h"
#include "detector/block_pool.h"
#include "detector/fasttrack_core.h"
#include "detector/happens_before_detector.h"
#include "detector/moment_atomics.h"
#include "detector/moment_clocks.h"
#include "detector/moment_history.h"

namespace trapline {

// Shadow memory under the FastTrack rules, with their counts, for clocks and epochs of
// MomentClocks. Shared by FastTrack and the detectors that sample in front of it.
class FastTrackAnalysis {
 public:
  using Cell = FastTrackCell<BlockPool>;
  static_assert(sizeof(Cell) == 16);

 private:
  using Shadow = ShadowMemory<Cell>;

 public:
  // Where shadow memory is for an access that will follow soon.
  using Line = Shadow::Line;

  // Whether a plain access of a thread in its epoch E_t is the second to the same cell in that
  // epoch, so that there is nothing to check. Most are.
  // [FT READ SAME EPOCH], [FT WRITE SAME EPOCH]
  [[gnu::always_inline]] bool InEpoch(const Cell& cell, const Event& event, Epoch epoch) {
    const auto chain_of = [this](const AccessRecord& record) {
      return places_.ChainOf(record.place());
    };
    if (!cell.InEpoch(event.kind, epoch, chain_of)) return false;
    ++rules_[event.kind == EventKind::kWrite ? kWriteSameEpoch : kReadSameEpoch];
    return true;
  }

  // Any plain access of the thread with clock C_t in its epoch E_t. Returns false if every cell was
  // already accessed in this epoch.
  bool OnAccess(const Event& event, std::uint64_t index, Epoch epoch, const VectorClock& clock,
                RaceLog* log) {
    Cell* const cell = event.size <= 8 ? shadow_.FindExact(event.address, event.size) : nullptr;
    if (cell == nullptr) return OnCells(event, index, epoch, clock, log);
    if (InEpoch(*cell, event, epoch)) return false;
    OnCell(*cell, event, index, epoch, clock, log);
    return true;
  }

  // The same for an access that is to `cell` and not InEpoch.
  [[gnu::always_inline]] void OnCell(Cell& cell, const Event& event, std::uint64_t index,
                                     Epoch epoch, const VectorClock& clock, RaceLog* log) {
    OnCell(cell, event.address, event.size, event, index, epoch, clock, log);
  }

  // OnAccess for two words, whose cells they are.
  bool OnPair(Cell* cells, const Event& event, std::uint64_t index, Epoch epoch,
              const VectorClock& clock, RaceLog* log);

  // The checks of an atomic access against earlier plain ones.
  void Check(const Event& atomic, std::uint64_t index, const VectorClock& clock, RaceLog* log);

  // The access was repeated in `epoch`, as FastTrackCell::Repeat has it. knows(thread): whether
  // what the thread did last may have come after that, in order, and be told before.
  template <class Knows>
  void Repeat(const Event& event, std::uint64_t index, Epoch epoch, const VectorClock& clock,
              Knows&& knows, RaceLog* log);

  // As DetectorBase has them.
  bool PrefetchesPages() const { return shadow_.PrefetchesPages(); }
  void PrefetchPage(const Event& event) const { shadow_.PrefetchPage(event.address); }
  Line* PrefetchLine(const Event& event) const {
    Line* const line = shadow_.FindLine(event.address);
    __builtin_prefetch(line);
    return line;
  }
  [[gnu::always_inline]] Cell* PrefetchCell(const Event& event, const Line* line) const {
    return shadow_.PrefetchCells(line, event.address, event.size);
  }
  [[gnu::always_inline]] Cell* FindCell(const Event& event, const Line* line) const {
    return shadow_.FindCells(line, event.address, event.size);
  }
  std::uint64_t lines_version() const { return shadow_.lines_version(); }
  std::uint64_t cells_version() const { return shadow_.cells_version(); }

  // Whether it is time for Condense, where cells may take so many bytes before it is.
  bool WantsCondensing() const { return shadow_.cell_bytes() >= condense_at_; }
  void SetCondensing(std::uint64_t from) { condense_at_ = condense_from_ = from; }
  // What `known` covers is forgotten, a clock that those of all accesses to come include: none of
  // them can race with it. If that is not much, neighbours that a thread has accessed from one
  // place in one epoch, each by an access of its own, are remembered as one, with the moment of one
  // of them: who comes after one comes after all. in_one_epoch(thread, moment, moment) tells.
  template <class InOneEpoch>
  void Condense(const VectorClock& known, InOneEpoch&& in_one_epoch);

  void Clear(std::uint64_t address, std::uint64_t size) {
    shadow_.Clear(address, size);
    if (condense_from_ != 0) condense_at_ = std::min(condense_at_, CondenseAt(1));
  }
  void Copy(std::uint64_t destination, std::uint64_t source, std::uint64_t size);

  // The rule counts of Figure 3. An access that meets several cells counts once for each.
  std::vector<Statistic> statistics() const;

 private:
  // What happened before the access of a thread with this clock. A chain stands for its threads.
  struct Past {
    const AccessPlaces& places;
    const VectorClock& clock;

    [[gnu::always_inline]] ThreadId ThreadOf(const AccessRecord& record) const {
      return places.ChainOf(record.place());
    }
    [[gnu::always_inline]] bool Covers(const AccessRecord& record) const {
      return record.moment() <= clock[ThreadOf(record)];
    }
  };

  static constexpr std::uint64_t kWordSize = 8;
  static std::uint64_t WordOf(std::uint64_t address) { return address - address % kWordSize; }

  // The access by a thread of `chain` in the history of the cell at `address`, and back.
  [[gnu::always_inline]] AccessRecord Pack(const Event& event, ThreadId chain, Clock moment,
                                           std::uint64_t address) {
    const PlaceId place = places_.IdOf(AccessPlace::Make(event, WordOf(address)), chain);
    return place == 0 ? AccessRecord() : AccessRecord(moment, place);
  }
  Access Unpack(const AccessRecord& record, EventKind kind, std::uint64_t address) const;
  [[gnu::noinline]] void Report(const AccessRecord& prior, EventKind kind, const Event& event,
                                std::uint64_t index, std::uint64_t address, std::uint64_t size,
                                RaceLog* log) const;
  void CollectPlaces();
  // When cells have grown by that share of what there is to look at.
  std::uint64_t CondenseAt(unsigned share) const {
    const std::uint64_t cells = shadow_.cell_bytes();
    return std::max(condense_from_, cells + (cells + shadow_.line_bytes()) / share);
  }

  // The other rules on the cell of [address, address+size).
  [[gnu::always_inline]] void OnCell(Cell& cell, std::uint64_t address, std::uint64_t size,
                                     const Event& event, std::uint64_t index, Epoch epoch,
                                     const VectorClock& clock, RaceLog* log) {
    const auto on_race = [&](const AccessRecord& prior, EventKind kind)
        __attribute__((always_inline)) {
      Report(prior, kind, event, index, address, size, log);
    };
    const auto now = [&]() __attribute__((always_inline)) {
      return Pack(event, epoch.thread(), MomentClocks::MomentAt(index), address);
    };
    const Past past{places_, clock};
    ++rules_[event.kind == EventKind::kWrite ? cell.Write(past, now, on_race)
                                             : cell.Read(readers_, epoch, past, now, on_race)];
  }
  // OnAccess for any number of cells.
  bool OnCells(const Event& event, std::uint64_t index, Epoch epoch, const VectorClock& clock,
               RaceLog* log);

  BlockPool readers_;
  Shadow shadow_;
  std::uint64_t condense_from_ = 0;  // bytes of cells; 0 = never
  std::uint64_t condense_at_ = ~std::uint64_t{0};
  AccessPlaces places_;
  std::array<std::uint64_t, kFastTrackRules> rules_{};
};

class FastTrack final : public HappensBeforeDetector<FastTrack, MomentClocks, MomentAtomics> {
 public:
  static constexpr bool kOrdersByRule = true;
  static constexpr std::string_view kName = "fasttrack";

  // `name` is what name() answers (LARD's ablations are FastTrack behind other interfaces); a
  // literal.
  explicit FastTrack(const DetectorOptions& options, const RuntimeInterface& interface = {},
                     std::string_view name = kName)
      : HappensBeforeDetector(options, interface), name_(name) {
    if (options.condense_from == 0) return;
    analysis_.SetCondensing(options.condense_from);
    forget_atomics_at_ = forget_atomics_from_ = options.condense_from;
    synchronisation_.clocks().RememberReleases();
  }

  using Line = FastTrackAnalysis::Line*;
  using Cell = FastTrackAnalysis::Cell*;

  [[gnu::always_inline]] void OnPlain(const Event& event, std::uint64_t index, Cell cell) {
    if (event.size > 8) [[unlikely]] {
      OnPair(event, index, cell);
      return;
    }
    if (!analysis_.InEpoch(*cell, event, synchronisation_.EpochOf(event.thread)))
      OnCell(event, index, cell);
  }
  void OnPlain(const Event& event, std::uint64_t index);
  bool PrefetchesPages() const { return analysis_.PrefetchesPages(); }
  void PrefetchPage(const Event& event) const {
    if (IsAtomic(event.kind)) [[unlikely]]
      PrefetchAtomicPage(event);
    analysis_.PrefetchPage(event);
  }
  Line PrefetchLine(const Event& event) {
    if (!IsPlainAccess(event.kind)) [[unlikely]]
      PrefetchOther(event);
    return analysis_.PrefetchLine(event);
  }
  [[gnu::always_inline]] Cell PrefetchCell(const Event& event, Line line) {
    if (!IsPlainAccess(event.kind)) [[unlikely]]
      PrefetchMoreOfOther(event);
    return analysis_.PrefetchCell(event, line);
  }
  [[gnu::always_inline]] Cell PrefetchByte(const Event& event, Line line) const {
    if (event.size != 1) return nullptr;
    const Cell cell = FindCell(event, line);
    __builtin_prefetch(cell, 1);
    return cell;
  }
  [[gnu::always_inline]] static void PrefetchReaders(Cell cell) { cell->Prefetch(); }
  [[gnu::always_inline]] Cell FindCell(const Event& event, Line line) const {
    return analysis_.FindCell(event, line);
  }
  std::uint64_t lines_version() const { return analysis_.lines_version(); }
  std::uint64_t cells_version() const { return analysis_.cells_version(); }
  void CheckAgainstPlain(const Event& atomic, std::uint64_t index) {
    analysis_.Check(atomic, index, synchronisation_.ClockOf(atomic.thread), &race_log_);
  }
  void OnSynchronise(const Event& event, std::uint64_t index) {
    if (event.kind == EventKind::kThreadEnd && event.thread < moments_.size())
      moments_[event.thread] = {};  // nothing is known of the thread any more
    HappensBeforeDetector::OnSynchronise(event, index);
  }
  void OnAtomic(const Event& event, std::uint64_t index, bool access_counts,
                bool synchronisation_counts) {
    if (atomics_.cell_bytes() >= forget_atomics_at_) [[unlikely]]
      ForgetKnownAtomics();
    HappensBeforeDetector::OnAtomic(event, index, access_counts, synchronisation_counts);
  }
  void OnMoment(ThreadId thread, std::uint64_t moment);
  void OnEarlier(const Event& event, std::uint64_t index);
  bool TakesRepeats() const override { return true; }
  void OnTick(const Event& event, std::uint64_t index);
  void OnLateRelease(const Event& event);
  // LARD's ablations may know of no locks.
  bool TakesLateReleases() const override { return name_ == kName; }
  void OnClear(std::uint64_t address, std::uint64_t size);
  void OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size);

  std::vector<Statistic> statistics() const override;
  std::string_view name() const override { return name_; }

 private:
  void PrefetchOther(const Event& event) {
    if (IsAtomic(event.kind)) {
      PrefetchAtomicLine(event);
    } else {
      PrefetchLock(event);
    }
  }
  void PrefetchMoreOfOther(const Event& event) {
    if (IsAtomic(event.kind)) {
      PrefetchAtomicCell(event);
    } else {
      PrefetchLockClock(event);
    }
  }
  [[gnu::noinline]] void OnCell(const Event& event, std::uint64_t index, Cell cell);
  // The same for an access to two words, InEpoch or not.
  [[gnu::noinline]] void OnPair(const Event& event, std::uint64_t index, Cell cells);

  [[gnu::noinline]] void ForgetKnownAtomics();
  std::uint64_t ForgetAtomicsAt() const {
    return std::max(forget_atomics_from_, 2 * atomics_.cell_bytes());
  }

  // By thread. Repeats are told before what is kept here ends.
  std::vector<MomentHistory> moments_;

  FastTrackAnalysis analysis_;
  std::uint64_t forget_atomics_from_ = 0;  // bytes of cells, those of four words 32; 0 = never
  std::uint64_t forget_atomics_at_ = ~std::uint64_t{0};
  std::string_view name_;
};

}  // namespace trapline
