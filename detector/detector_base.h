// The common front of all detectors: takes events one by one or in batches, drops what does not
// count, and hands the rest to the concrete detector without virtual calls.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "detector/detector.h"
#include "detector/race_log.h"
#include "detector/runtime_scopes.h"

namespace trapline {

inline Access MakeAccess(const Event& event, std::uint64_t index) {
  return {.index = index,
          .address = event.address,
          .size = event.size,
          .ip = event.ip,
          .stack = event.stack,
          .thread = event.thread,
          .kind = event.kind};
}

// Accesses longer than this are checked piece by piece, and a report shows the piece. (A memcpy of
// a gigabyte is one event; a race within it concerns a few bytes.)
inline constexpr std::uint64_t kMaxPiece = 32768;

// The bytes from here on belong to no program (an access there cannot succeed) and are ignored,
// which keeps address + size from wrapping around.
inline constexpr std::uint64_t kTopOfMemory = ~std::uint64_t{0} - 4095;

// Derived provides
//   void OnPlain(const Event&, std::uint64_t index)      kRead, kWrite; 0 < size <= kMaxPiece
//   void OnAtomic(const Event&, std::uint64_t index, bool access_counts, bool
//   synchronisation_counts) void OnSynchronise(const Event&, std::uint64_t index)     kAcquire ..
//   kBarrierLeave, and kJoinBegin void OnClear(std::uint64_t address, std::uint64_t size) void
//   OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size)
// and may hide OnSampling and OnCleared, which says by whom after OnClear. If it can be told of
// accesses later (Detector::TakesRepeats), it has
//   OnMoment(ThreadId thread, std::uint64_t moment)
//   OnEarlier(const Event&, std::uint64_t index)          kEarlierRead, kEarlierWrite
// and if of locks (Detector::TakesLateReleases)
//   OnTick(const Event&, std::uint64_t index)
//   OnLateRelease(const Event&)
// and if it heeds an ordering rule, a constant kOrdersByRule.
// Waiting for shadow memory is most of the work, so a detector may look ahead. It then has types
// Line and Cell (pointers) and
//   bool PrefetchesPages()                       whether the first one is worth while
//   void PrefetchPage(const Event&)
//   Line PrefetchLine(const Event&)
//   Cell PrefetchCell(const Event&, Line)        null: not known, or not yet
//   void PrefetchReaders(Cell), or, where the cell was null, Cell PrefetchByte(const Event&, Line)
//   void PrefetchPast(const Event&), PrefetchMoreOfPast(const Event&)     of other events
//     called in this order with events that follow soon; each brings in what the next one needs
//   Cell FindCell(const Event&, Line)            at once; null: not known
//   void OnPlain(const Event&, std::uint64_t index, Cell)            not null
//   std::uint64_t lines_version(), cells_version()   change when what was found becomes void
template <class Derived>
class DetectorBase : public Detector {
 public:
  explicit DetectorBase(const DetectorOptions& options, const RuntimeInterface& interface = {})
      : race_log_(options.all_races), interface_(interface), tracking_(interface) {}

  void OnEvent(const Event& event, std::uint64_t index) final { Dispatch(event, index); }

  void OnEvents(std::span<const Event> events, std::uint64_t first_index) final {
    if constexpr (requires { typename Derived::Line; }) {
      LookAhead(events, first_index);
    } else {
      for (const Event& event : events) Dispatch(event, first_index++);
    }
  }

  void SetOrderingRule(const OrderingRule& rule) final {
    if constexpr (requires { Derived::kOrdersByRule; }) race_log_.SetOrderingRule(rule);
  }

  std::span<const Race> races() const final { return race_log_.races(); }
  std::uint64_t race_count() const final { return race_log_.count(); }

 protected:
  void OnSampling(bool /*begins*/) {}
  void OnCleared(const Event& /*clear*/) {}

  RaceLog race_log_;

 private:
  Derived& derived() { return static_cast<Derived&>(*this); }

  void Dispatch(const Event& event, std::uint64_t index) {
    if (IsPlainAccess(event.kind) && !tracking_.active() && event.size - 1 < kMaxPiece &&
        event.address < kTopOfMemory - kMaxPiece) [[likely]] {
      derived().OnPlain(event, index);
    } else {
      DispatchOther(event, index);
    }
  }

  // OnEvents with what was found of the next events in rings.
  void LookAhead(std::span<const Event> events, std::uint64_t first_index) {
    constexpr std::size_t kRing = 64;
    constexpr std::size_t kPageAhead = 48;
    constexpr std::size_t kLineAhead = 36;
    constexpr std::size_t kCellAhead = 24;
    constexpr std::size_t kReadersAhead = 12;
    constexpr std::size_t kPastAhead = 6;
    std::array<typename Derived::Line, kRing> lines;
    std::array<typename Derived::Cell, kRing> cells;
    Derived& detector = derived();
    const std::size_t size = events.size();
    const auto find_lines = [&](std::size_t from, std::size_t to) {
      for (; from < std::min(to, size); ++from)
        lines[from % kRing] = detector.PrefetchLine(events[from]);
    };
    find_lines(0, kLineAhead);
    for (std::size_t i = 0; i < std::min(kCellAhead, size); ++i)
      cells[i] = detector.PrefetchCell(events[i], lines[i]);
    const bool pages = detector.PrefetchesPages();
    std::uint64_t lines_version = detector.lines_version();
    std::uint64_t cells_version = detector.cells_version();
    std::size_t unknown_before = 0;  // the cells of earlier events than this one
    for (std::size_t i = 0; i < size; ++i) {
      if (pages && i + kPageAhead < size) detector.PrefetchPage(events[i + kPageAhead]);
      if (const std::size_t next = i + kLineAhead; next < size) [[likely]]
        lines[next % kRing] = detector.PrefetchLine(events[next]);
      if (const std::size_t next = i + kCellAhead; next < size) [[likely]]
        cells[next % kRing] = detector.PrefetchCell(events[next], lines[next % kRing]);
      if (const std::size_t next = i + kPastAhead; next < size && !IsPlainAccess(events[next].kind))
          [[unlikely]] {
        detector.PrefetchMoreOfPast(events[next]);
      }
      if (const std::size_t next = i + kReadersAhead; next < size && next >= unknown_before)
          [[likely]] {
        if (!IsPlainAccess(events[next].kind)) [[unlikely]]
          detector.PrefetchPast(events[next]);
        typename Derived::Cell& cell = cells[next % kRing];
        if (cell != nullptr) [[likely]] {
          detector.PrefetchReaders(cell);
        } else {
          cell = detector.PrefetchByte(events[next], lines[next % kRing]);
        }
      }

      const Event& event = events[i];
      const typename Derived::Cell cell =
          i >= unknown_before ? cells[i % kRing] : detector.FindCell(event, lines[i % kRing]);
      if (cell != nullptr && IsPlainAccess(event.kind) && !tracking_.active()) [[likely]] {
        detector.OnPlain(event, first_index + i, cell);
      } else {
        Dispatch(event, first_index + i);
      }
      if (cells_version == detector.cells_version()) [[likely]]
        continue;
      cells_version = detector.cells_version();
      unknown_before = i + kCellAhead + 1;
      if (lines_version == detector.lines_version()) continue;
      lines_version = detector.lines_version();
      find_lines(i + 1, i + kLineAhead + 1);
    }
  }

  [[gnu::noinline]] void DispatchOther(Event event, std::uint64_t index) {
    switch (event.kind) {
      case EventKind::kRead:
      case EventKind::kWrite:
        if (!tracking_.CountsAccesses(event.thread)) return;
        event.thread = tracking_.NameOf(event.thread);
        ForEachPiece(event, [&](const Event& piece) { derived().OnPlain(piece, index); });
        break;
      case EventKind::kAtomicRead:
      case EventKind::kAtomicWrite:
      case EventKind::kAtomicRmw: {
        const bool synchronises = tracking_.CountsSynchronisation(event.thread);
        bool accesses = (event.flags & kOnlyOrders) == 0 && tracking_.CountsAccesses(event.thread);
        event.thread = tracking_.NameOf(event.thread);
        event.size = Clamp(event.address, std::min(event.size, kMaxPiece));
        if (event.size == 0) return;
        if (accesses) {
          accesses = false;
          tracking_.ForEachTracked(event.address, event.size,
                                   [&](std::uint64_t, std::uint64_t) { accesses = true; });
        }
        if (accesses || synchronises) derived().OnAtomic(event, index, accesses, synchronises);
        break;
      }
      case EventKind::kAcquire:
      case EventKind::kRelease:
      case EventKind::kAcquireShared:
      case EventKind::kReleaseShared:
      case EventKind::kHappensBefore:
      case EventKind::kHappensAfter:
      case EventKind::kBarrierEnter:
      case EventKind::kBarrierLeave:
        if (!tracking_.CountsSynchronisation(event.thread)) return;
        [[fallthrough]];
      case EventKind::kFork:
      case EventKind::kJoinBegin:
      case EventKind::kJoin:
      case EventKind::kThreadEnd:
        event.thread = tracking_.NameOf(event.thread);
        event.other = tracking_.NameOf(event.other);
        derived().OnSynchronise(event, index);
        if constexpr (requires { derived().OnEarlier(event, index); }) {
          if (IsReleaseOfLock(event.kind) && event.aux != 0)
            derived().OnMoment(event.thread, event.aux);
        }
        break;
      case EventKind::kClearHistory:
        event.size = Clamp(event.address, event.size);
        if (interface_.clear_history && event.size > 0) {
          derived().OnClear(event.address, event.size);
          event.thread = tracking_.NameOf(event.thread);
          derived().OnCleared(event);
        }
        break;
      case EventKind::kCopyHistory:
        event.size = Clamp(event.address, Clamp(event.aux, event.size));
        if (interface_.copy_history && event.size > 0) {
          derived().OnCopy(event.address, event.aux, event.size);
        }
        break;
      case EventKind::kTrack:
      case EventKind::kUntrack:
        event.size = Clamp(event.address, event.size);
        tracking_.Apply(event);
        break;
      case EventKind::kIdentity:
      case EventKind::kTrackThread:
      case EventKind::kUntrackThread:
        tracking_.Apply(event);
        break;
      case EventKind::kSamplingBegin:
      case EventKind::kSamplingEnd:
        derived().OnSampling(event.kind == EventKind::kSamplingBegin);
        break;
      case EventKind::kMissingBegin:
      case EventKind::kMissingEnd:
        break;  // only the predictive engines know what to do with missing code
      case EventKind::kMoment:
      case EventKind::kEarlierRead:
      case EventKind::kEarlierWrite:
      case EventKind::kTick:
      case EventKind::kLateRelease:
        DispatchLate(event, index);
        break;
    }
  }

  // What is told of accesses and locks later.
  void DispatchLate(const Event& event, std::uint64_t index) {
    if constexpr (requires { derived().OnEarlier(event, index); }) {
      if (event.kind == EventKind::kMoment) derived().OnMoment(event.thread, event.aux);
      if (IsEarlierAccess(event.kind)) derived().OnEarlier(event, index);
    }
    if constexpr (requires { derived().OnLateRelease(event); }) {
      if (event.kind == EventKind::kTick) derived().OnTick(event, index);
      if (event.kind == EventKind::kLateRelease) derived().OnLateRelease(event);
    }
  }

  // The part of [address, address+size) below kTopOfMemory, in bytes.
  static std::uint64_t Clamp(std::uint64_t address, std::uint64_t size) {
    return address >= kTopOfMemory ? 0 : std::min(size, kTopOfMemory - address);
  }

  template <class Visit>
  void ForEachPiece(Event event, Visit&& visit) {
    tracking_.ForEachTracked(event.address, Clamp(event.address, event.size),
                             [&](std::uint64_t address, std::uint64_t size) {
                               while (size > 0) {
                                 event.address = address;
                                 event.size = std::min(size, kMaxPiece - address % kMaxPiece);
                                 visit(event);
                                 address += event.size;
                                 size -= event.size;
                               }
                             });
  }

  RuntimeInterface interface_;
  RuntimeScopes tracking_;
};

}  // namespace trapline
