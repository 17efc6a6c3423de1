#include "detector/multi_race.h"

#include "detector/factory.h"

namespace trapline {

void MultiRace::OnAccess(const Event& event, std::uint64_t index) {
  const VectorClock& clock = synchronisation_.ClockOf(event.thread);
  const TimedAccess now{synchronisation_.EpochOf(event.thread), held_.For(event),
                        MakeAccess(event, index)};
  const bool is_write = IsWrite(event.kind);
  const bool is_atomic = IsAtomic(event.kind);
  shadow_.ForEach(
      event.address, event.size, [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
        ++accesses_;
        AccessHistory& own = is_atomic ? (is_write ? cell.atomic_writes : cell.atomic_reads)
                                       : (is_write ? cell.writes : cell.reads);
        if (own.Contains(now.epoch)) {  // [DJIT+ SAME EPOCH]
          ++same_epoch_;
          return;
        }
        if (cell.lockset.OnAccess(event.thread, is_write, now.lockset, &locksets_)) {
          ++compared_;
          const auto check = [&](const AccessHistory& history) {
            for (const TimedAccess& prior : history) {
              if (!clock.Covers(prior.epoch)) {
                race_log_.Report(prior.access, now.access, address, size);
              }
            }
          };
          check(cell.writes);
          if (is_write) check(cell.reads);
          if (!is_atomic) {
            check(cell.atomic_writes);
            if (is_write) check(cell.atomic_reads);
          }
        }
        own.Put(now);
      });
}

void MultiRace::OnAtomic(const Event& event, std::uint64_t index, bool access_counts,
                         bool synchronises) {
  if (synchronises) AtomicAcquire(event);
  if (access_counts) OnAccess(event, index);
  if (synchronises) AtomicRelease(event);
}

void MultiRace::OnSynchronise(const Event& event, std::uint64_t /*index*/) {
  held_.Apply(event);
  synchronisation_.Apply(event);
}

void MultiRace::OnClear(std::uint64_t address, std::uint64_t size) {
  shadow_.Clear(address, size);
  ClearAtomics(address, size);
}

void MultiRace::OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
  shadow_.Copy(destination, source, size);
  CopyAtomics(destination, source, size);
}

std::vector<Statistic> MultiRace::statistics() const {
  return {{"same epoch", same_epoch_, accesses_},
          {"vector clocks compared", compared_, accesses_},
          {"lockset operations", locksets_.operations()},
          {"vector clock operations", synchronisation_.operations()}};
}

template std::unique_ptr<Detector> Make<MultiRace>(const DetectorOptions&);

}  // namespace trapline
