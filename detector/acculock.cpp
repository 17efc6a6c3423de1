#include "detector/acculock.h"

#include "detector/factory.h"

namespace trapline {

void AccuLock::OnSynchronise(const Event& event, std::uint64_t /*index*/) {
  held_.Apply(event);             // Algorithms 4 and 5: L_t
  synchronisation_.Apply(event);  // Algorithms 5 to 9: C_t
}

void AccuLock::OnPlain(const Event& event, std::uint64_t index) {
  FollowOthers(event, index);
  if (event.kind == EventKind::kWrite) {
    Write(event, index);
  } else {
    Read(event, index);
  }
  OrderByRule(index);
}

// Algorithm 10
void AccuLock::Read(const Event& event, std::uint64_t index) {
  const VectorClock& clock = synchronisation_.ClockOf(event.thread);
  const TimedAccess now{synchronisation_.EpochOf(event.thread), held_.ForPair(event),
                        MakeAccess(event, index)};
  bool checked = false;
  shadow_.ForEach(event.address, event.size,
                  [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
                    ++accesses_;
                    if (cell.write.epoch == now.epoch || cell.reads.Contains(now.epoch)) {
                      ++same_epoch_;  // redundant by Lemma 1
                      return;
                    }
                    checked = true;
                    cell.reads.Put(now);
                    if (!clock.Covers(cell.write.epoch) &&
                        locksets_.Disjoint(now.lockset, cell.write.lockset)) {
                      race_log_.Report(cell.write.access, now.access, address, size);
                    }
                  });
  if (checked) CheckAgainstAtomics(event, index);
}

// Algorithm 11
void AccuLock::Write(const Event& event, std::uint64_t index) {
  const VectorClock& clock = synchronisation_.ClockOf(event.thread);
  const TimedAccess now{synchronisation_.EpochOf(event.thread), held_.ForPair(event),
                        MakeAccess(event, index)};
  bool checked = false;
  shadow_.ForEach(
      event.address, event.size, [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
        ++accesses_;
        if (cell.write.epoch == now.epoch) {
          ++same_epoch_;  // redundant by Lemma 2
          return;
        }
        checked = true;
        const TimedAccess prior = cell.write;
        cell.write = now;
        if (!clock.Covers(prior.epoch)) {
          cell.write.lockset = locksets_.Intersect(prior.lockset, now.lockset);
          if (locksets_.Disjoint(prior.lockset, now.lockset)) {
            race_log_.Report(prior.access, now.access, address, size);
          }
        }
        for (const TimedAccess& read : cell.reads) {
          if (!clock.Covers(read.epoch) && locksets_.Disjoint(read.lockset, now.lockset)) {
            race_log_.Report(read.access, now.access, address, size);
          }
        }
        cell.reads.Clear();
      });
  if (checked) CheckAgainstAtomics(event, index);
}

void AccuLock::CheckAgainstPlain(const Event& atomic, std::uint64_t index) {
  const VectorClock& clock = synchronisation_.ClockOf(atomic.thread);
  const LocksetId lockset = held_.ForPair(atomic);
  shadow_.ForEachExisting(
      atomic.address, atomic.size, [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
        const auto check = [&](const TimedAccess& prior) {
          if (!clock.Covers(prior.epoch) && locksets_.Disjoint(prior.lockset, lockset)) {
            race_log_.Report(prior.access, MakeAccess(atomic, index), address, size);
          }
        };
        check(cell.write);
        if (!IsWrite(atomic.kind)) return;
        for (const TimedAccess& read : cell.reads) check(read);
      });
}

void AccuLock::OnClear(std::uint64_t address, std::uint64_t size) {
  shadow_.Clear(address, size);
  ClearAtomics(address, size);
}

void AccuLock::OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
  shadow_.Copy(destination, source, size);
  CopyAtomics(destination, source, size);
}

std::vector<Statistic> AccuLock::statistics() const {
  return {{"same epoch", same_epoch_, accesses_},
          {"lockset operations", locksets_.operations()},
          {"lockset operations computed", locksets_.computed(), locksets_.operations()},
          {"vector clock operations", synchronisation_.operations()}};
}

template std::unique_ptr<Detector> Make<AccuLock>(const DetectorOptions&);

}  // namespace trapline
