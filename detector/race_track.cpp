#include "detector/race_track.h"

#include "detector/factory.h"

namespace trapline {
namespace {

// S_x := {s in S_x : s not before the current access} ∪ {now}
void Merge(AccessHistory& threads, const TimedAccess& now, const VectorClock& clock) {
  AccessHistory concurrent;
  for (const TimedAccess& entry : threads) {
    if (!clock.Covers(entry.epoch)) concurrent.Put(entry);
  }
  concurrent.Put(now);
  threads = concurrent;
}

}  // namespace

bool RaceTrack::OnAccess(Cell& cell, const TimedAccess& now, const VectorClock& clock) {
  const bool is_write = IsWrite(now.access.kind);
  const auto merge = [&] {
    ++threadset_operations_;
    Merge(cell.threads, now, clock);
    return cell.threads.size() > 1;
  };
  switch (cell.state) {
    case State::kVirgin:
      cell.state = State::kExclusive0;
      cell.owner = now.access.thread;
      break;
    case State::kExclusive0:
      if (now.access.thread == cell.owner) break;
      cell.state = State::kExclusive1;
      cell.threads.Reset(now);
      break;
    case State::kExclusive1:
      if (!merge()) break;
      cell.state = is_write ? State::kSharedModify1 : State::kSharedRead;
      cell.lockset = now.lockset;
      cell.threads.Clear();
      break;
    case State::kSharedRead:
      cell.lockset = locksets_.Intersect(cell.lockset, now.lockset);
      if (!is_write) break;
      cell.state = State::kSharedModify1;
      [[fallthrough]];
    case State::kSharedModify1:
      cell.lockset = locksets_.Intersect(cell.lockset, now.lockset);
      if (cell.lockset != kEmptyLockset) break;
      cell.state = State::kExclusive2;
      cell.threads.Reset(now);
      break;
    case State::kExclusive2:
      if (!merge()) break;
      cell.state = State::kSharedModify2;
      cell.lockset = now.lockset;
      return cell.lockset == kEmptyLockset;
    case State::kSharedModify2:
      if (!merge()) {
        cell.state = State::kExclusive2;
        break;
      }
      cell.lockset = locksets_.Intersect(cell.lockset, now.lockset);
      return cell.lockset == kEmptyLockset;
  }
  return false;
}

void RaceTrack::OnPlain(const Event& event, std::uint64_t index) {
  const VectorClock& clock = synchronisation_.ClockOf(event.thread);
  const TimedAccess now{synchronisation_.EpochOf(event.thread), held_.For(event),
                        MakeAccess(event, index)};
  shadow_.ForEach(event.address, event.size,
                  [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
                    if (OnAccess(cell, now, clock)) {
                      if (const Access* other = cell.last.LatestConflict(now.access)) {
                        race_log_.Report(*other, now.access, address, size);
                      }
                    }
                    cell.last.Put(now);
                  });
}

void RaceTrack::OnAtomic(const Event& event, std::uint64_t index, bool access_counts,
                         bool synchronises) {
  if (synchronises) AtomicAcquire(event);
  if (access_counts) OnPlain(event, index);  // under the bus lock
  if (synchronises) AtomicRelease(event);
}

void RaceTrack::OnSynchronise(const Event& event, std::uint64_t /*index*/) {
  held_.Apply(event);
  synchronisation_.Apply(event);
}

void RaceTrack::OnClear(std::uint64_t address, std::uint64_t size) {
  shadow_.Clear(address, size);
  ClearAtomics(address, size);
}

void RaceTrack::OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
  shadow_.Copy(destination, source, size);
  CopyAtomics(destination, source, size);
}

std::vector<Statistic> RaceTrack::statistics() const {
  return {{"threadset operations", threadset_operations_},
          {"lockset operations", locksets_.operations()},
          {"vector clock operations", synchronisation_.operations()}};
}

template std::unique_ptr<Detector> Make<RaceTrack>(const DetectorOptions&);

}  // namespace trapline
