#include "detector/hybrid.h"

#include "detector/factory.h"

namespace trapline {
namespace {

bool CoversKind(EventKind a, EventKind b) { return IsWrite(a) || !IsWrite(b); }

}  // namespace

void Hybrid::OnPlain(const Event& event, std::uint64_t index) {
  const VectorClock& clock = synchronisation_.ClockOf(event.thread);
  const TimedAccess now{synchronisation_.EpochOf(event.thread), held_.ForPair(event),
                        MakeAccess(event, index)};
  shadow_.ForEach(
      event.address, event.size, [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
        ++accesses_;
        bool redundant = false;
        for (const TimedAccess& prior : cell.accesses) {
          if (prior.access.thread == event.thread) {
            // Whatever races with `now` later on races with `prior` too: the same time, no more
            // locks.
            redundant |= prior.epoch == now.epoch && CoversKind(prior.access.kind, event.kind) &&
                         locksets_.IsSubset(prior.lockset, now.lockset);
          } else if ((IsWrite(prior.access.kind) || IsWrite(event.kind)) &&
                     !clock.Covers(prior.epoch) && locksets_.Disjoint(prior.lockset, now.lockset)) {
            race_log_.Report(prior.access, now.access, address, size);
          }
        }
        if (redundant) {
          ++redundant_;
          return;
        }
        // Whatever will race with an earlier access of this thread under no fewer locks races with
        // `now`.
        std::erase_if(cell.accesses, [&](const TimedAccess& prior) {
          return prior.access.thread == event.thread && CoversKind(event.kind, prior.access.kind) &&
                 locksets_.IsSubset(now.lockset, prior.lockset);
        });
        cell.accesses.push_back(now);
      });
}

void Hybrid::OnAtomic(const Event& event, std::uint64_t index, bool access_counts,
                      bool synchronises) {
  if (synchronises) AtomicAcquire(event);
  if (access_counts) OnPlain(event, index);  // under the bus lock
  if (synchronises) AtomicRelease(event);
}

void Hybrid::OnSynchronise(const Event& event, std::uint64_t /*index*/) {
  held_.Apply(event);
  synchronisation_.Apply(event);
}

void Hybrid::OnClear(std::uint64_t address, std::uint64_t size) {
  shadow_.Clear(address, size);
  ClearAtomics(address, size);
}

void Hybrid::OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
  shadow_.Copy(destination, source, size);
  CopyAtomics(destination, source, size);
}

std::vector<Statistic> Hybrid::statistics() const {
  return {{"redundant accesses", redundant_, accesses_},
          {"lockset operations", locksets_.operations()},
          {"lockset operations computed", locksets_.computed(), locksets_.operations()},
          {"vector clock operations", synchronisation_.operations()}};
}

template std::unique_ptr<Detector> Make<Hybrid>(const DetectorOptions&);

}  // namespace trapline
