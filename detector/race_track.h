// RaceTrack: a threadset tells whether a location is really accessed concurrently, and only then
// does its lockset count (Yu, Rodeheffer and Chen, SOSP 2005; AccuLock, section I-A).
#pragma once

#include "detector/happens_before_detector.h"

namespace trapline {

class RaceTrack final : public HappensBeforeDetector<RaceTrack> {
 public:
  explicit RaceTrack(const DetectorOptions& options)
      : HappensBeforeDetector(options, {}, LockEdges::kIgnore) {}

  void OnPlain(const Event& event, std::uint64_t index);
  void OnAtomic(const Event& event, std::uint64_t index, bool access_counts, bool synchronises);
  void OnSynchronise(const Event& event, std::uint64_t index);
  void CheckAgainstPlain(const Event& /*atomic*/, std::uint64_t /*index*/) {}
  void OnClear(std::uint64_t address, std::uint64_t size);
  void OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size);

  std::vector<Statistic> statistics() const override;
  std::string_view name() const override { return "racetrack"; }

 private:
  // What is kept grows with the evidence that the location is shared.
  enum class State : std::uint8_t {
    kVirgin,
    kExclusive0,     // one thread so far: nothing but its name
    kExclusive1,     // several threads, but never concurrent: threadset
    kSharedRead,     // read concurrently: lockset
    kSharedModify1,  // and written: lockset
    kExclusive2,     // the lockset became empty once: threadset, at most one thread at a time
    kSharedModify2,  // concurrent again: threadset and lockset; an empty lockset is a race
  };
  struct Cell {
    State state = State::kVirgin;
    ThreadId owner = 0;                 // kExclusive0
    LocksetId lockset = kEmptyLockset;  // C_x
    AccessHistory threads;              // S_x: accesses not ordered before the current one
    LastAccesses last;
  };

  // Moves the cell on; returns whether the access is a race.
  bool OnAccess(Cell& cell, const TimedAccess& now, const VectorClock& clock);

  LocksetTable locksets_;
  HeldLocks held_{&locksets_};
  ShadowMemory<Cell> shadow_;
  std::uint64_t threadset_operations_ = 0;
};

}  // namespace trapline
