#include "detector/fasttrack.h"

namespace trapline {

bool FastTrackAnalysis::OnCells(const Event& event, std::uint64_t index, Epoch epoch,
                                const VectorClock& clock, RaceLog* log) {
  bool checked = false;
  shadow_.ForEach(event.address, event.size,
                  [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
                    if (InEpoch(cell, event, epoch)) return;
                    checked = true;
                    OnCell(cell, address, size, event, index, epoch, clock, log);
                  });
  return checked;
}

void FastTrackAnalysis::Check(const Event& atomic, std::uint64_t index, const VectorClock& clock,
                              RaceLog* log) {
  shadow_.ForEachExisting(
      atomic.address, atomic.size, [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
        cell.Check(clock, IsWrite(atomic.kind), [&](const AccessRecord& prior, EventKind kind) {
          log->Report(prior.Unpack(kind), MakeAccess(atomic, index), address, size);
        });
      });
}

std::vector<Statistic> FastTrackAnalysis::statistics() const {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  for (int rule = kReadSameEpoch; rule <= kReadShare; ++rule) reads += rules_[rule];
  for (int rule = kWriteSameEpoch; rule <= kWriteShared; ++rule) writes += rules_[rule];
  return {{"read same epoch", rules_[kReadSameEpoch], reads},
          {"read shared", rules_[kReadShared], reads},
          {"read exclusive", rules_[kReadExclusive], reads},
          {"read share", rules_[kReadShare], reads},
          {"write same epoch", rules_[kWriteSameEpoch], writes},
          {"write exclusive", rules_[kWriteExclusive], writes},
          {"write shared", rules_[kWriteShared], writes}};
}

void FastTrack::OnClear(std::uint64_t address, std::uint64_t size) {
  analysis_.Clear(address, size);
  ClearAtomics(address, size);
}

void FastTrack::OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
  analysis_.Copy(destination, source, size);
  CopyAtomics(destination, source, size);
}

std::vector<Statistic> FastTrack::statistics() const {
  std::vector<Statistic> all = analysis_.statistics();
  all.push_back({"vector clock operations", synchronisation_.operations()});
  return all;
}

}  // namespace trapline
