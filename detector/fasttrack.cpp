#include "detector/fasttrack.h"

namespace trapline {

bool FastTrackAnalysis::OnCells(const Event& event, std::uint64_t index, Epoch epoch,
                                const VectorClock& clock, RaceLog* log) {
  if (places_.WantsCollection()) CollectPlaces();
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
          Report(prior, kind, atomic, index, address, size, log);
        });
      });
}

void FastTrackAnalysis::Copy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
  shadow_.Copy(destination, source, size, [&](Cell& cell, std::uint64_t to, std::uint64_t from) {
    const std::uint64_t moved = WordOf(to) - WordOf(from);
    cell.Transform([&](AccessRecord record) {
      if (record.place() == 0) return record;
      AccessPlace place = places_[record.place()];
      place.Move(moved);
      record.set_place(places_.IdOf(place));
      return record;
    });
  });
}

Access FastTrackAnalysis::Unpack(const AccessRecord& record, EventKind kind,
                                 std::uint64_t address) const {
  const AccessPlace& place = places_[record.place()];
  return {.index = record.position(),
          .address = place.AddressFor(WordOf(address)),
          .size = place.size,
          .ip = place.ip,
          .stack = place.stack,
          .thread = record.epoch.thread(),
          .kind = kind};
}

void FastTrackAnalysis::Report(const AccessRecord& prior, EventKind kind, const Event& event,
                               std::uint64_t index, std::uint64_t address, std::uint64_t size,
                               RaceLog* log) const {
  log->Report(Unpack(prior, kind, address), MakeAccess(event, index), address, size);
}

void FastTrackAnalysis::CollectPlaces() {
  std::vector<bool> used(places_.id_limit());
  shadow_.ForEachExisting(0, kTopOfMemory, [&](Cell& cell, std::uint64_t, std::uint64_t) {
    cell.Transform([&](const AccessRecord& record) {
      used[record.place()] = true;
      return record;
    });
  });
  places_.Collect(used);
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

void FastTrack::Check(const Event& event, std::uint64_t index, Hint hint) {
  const auto now = synchronisation_.NowOf(event.thread);
  if (analysis_.OnAccess(event, index, now.epoch, now.clock, &race_log_, hint)) {
    CheckAgainstAtomics(event, index);
  }
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
