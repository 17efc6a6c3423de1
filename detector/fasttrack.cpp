#include "detector/fasttrack.h"

#include <algorithm>

#include "detector/factory.h"

namespace trapline {

bool FastTrackAnalysis::OnCells(const Event& event, std::uint64_t index, Epoch epoch,
                                const VectorClock& clock, RaceLog* log) {
  if (places_.WantsCollection()) CollectPlaces();
  if (const Cell* const joined = shadow_.FindJoined(event.address)) {
    const std::uint64_t last = event.address + event.size - 1;
    if (event.address / 64 == last / 64 && InEpoch(*joined, event, epoch)) return false;
  }
  bool checked = false;
  shadow_.ForEach(event.address, event.size,
                  [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
                    if (InEpoch(cell, event, epoch)) return;
                    checked = true;
                    OnCell(cell, address, size, event, index, epoch, clock, log);
                  });
  return checked;
}

bool FastTrackAnalysis::OnPair(Cell* cells, const Event& event, std::uint64_t index, Epoch epoch,
                               const VectorClock& clock, RaceLog* log) {
  if (places_.WantsCollection()) CollectPlaces();
  bool checked = false;
  std::uint64_t address = event.address;
  for (Cell* cell = cells; cell < cells + 2; ++cell, address += 8) {
    if (InEpoch(*cell, event, epoch)) continue;
    checked = true;
    OnCell(*cell, address, 8, event, index, epoch, clock, log);
  }
  return checked;
}

void FastTrackAnalysis::Check(const Event& atomic, std::uint64_t index, const VectorClock& clock,
                              RaceLog* log) {
  shadow_.ForEachExisting(atomic.address, atomic.size,
                          [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
                            cell.Check(Past{places_, clock}, IsWrite(atomic.kind),
                                       [&](const AccessRecord& prior, EventKind kind) {
                                         Report(prior, kind, atomic, index, address, size, log);
                                       });
                          });
}

void FastTrackAnalysis::Copy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
  shadow_.Copy(destination, source, size, [&](Cell& cell, std::uint64_t to, std::uint64_t from) {
    const std::uint64_t moved = WordOf(to) - WordOf(from);
    cell.Transform([&](const AccessRecord& record) {
      AccessPlace place = places_[record.place()];
      place.Move(moved);
      const PlaceId id = places_.IdOf(place, places_.ChainOf(record.place()));
      return id == 0 ? record : AccessRecord(record.moment(), id);
    });
  });
}

template <class Knows>
void FastTrackAnalysis::Repeat(const Event& event, std::uint64_t index, Epoch epoch,
                               const VectorClock& clock, Knows&& knows, RaceLog* log) {
  if (places_.WantsCollection()) CollectPlaces();
  shadow_.ForEach(event.address, event.size,
                  [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
                    cell.Repeat(
                        readers_, event.kind == EventKind::kWrite, epoch, Past{places_, clock},
                        [&](const AccessRecord& before) {
                          // At some moment of the epoch. By the same instruction: its calls are
                          // likely to be the same, too, and of this access nobody knows them.
                          const Clock moment = epoch.clock() + 1;
                          if (before.empty() || places_[before.place()].ip != event.ip)
                            return Pack(event, epoch.thread(), moment, address);
                          return AccessRecord(moment, before.place());
                        },
                        [&](const AccessRecord& prior, EventKind kind) {
                          if (!knows(places_[prior.place()].thread))
                            Report(prior, kind, event, index, address, size, log);
                        });
                  });
}

template <class InOneEpoch>
void FastTrackAnalysis::Condense(const VectorClock& known, InOneEpoch&& in_one_epoch) {
  const std::uint64_t before = shadow_.cell_bytes();
  shadow_.Forget([&](const Cell& cell) {
    bool is_known = true;
    cell.Check(Past{places_, known}, true,
               [&](const AccessRecord&, EventKind) { is_known = false; });
    return is_known;
  });
  if (shadow_.cell_bytes() <= before / 2) {
    condense_at_ = CondenseAt(2);
    return;
  }
  const auto like = [&](const AccessRecord& a, const AccessRecord& b) {
    if (a == b) return true;
    if (a.IsOther() || b.IsOther() || a.place() != b.place()) return false;
    return in_one_epoch(places_[a.place()].thread, a.moment(), b.moment());
  };
  shadow_.Condense([&](const Cell& a, const Cell& b) { return a.HasHistoriesLike(b, like); });
  // Seldom where it does not pay.
  const bool pays = before - shadow_.cell_bytes() >= before / 16;
  condense_at_ = CondenseAt(pays ? 2 : 1);
}

Access FastTrackAnalysis::Unpack(const AccessRecord& record, EventKind kind,
                                 std::uint64_t address) const {
  return places_[record.place()].AccessAt(MomentClocks::PositionOf(record.moment()), kind,
                                          WordOf(address));
}

void FastTrackAnalysis::Report(const AccessRecord& prior, EventKind kind, const Event& event,
                               std::uint64_t index, std::uint64_t address, std::uint64_t size,
                               RaceLog* log) const {
  const Access first = Unpack(prior, kind, address);
  if (size > kWordSize) {  // each word was accessed by itself; moved history tells of other ones
    const std::uint64_t begin = std::max(address, first.address);
    const std::uint64_t end = std::min(address + size, first.address + first.size);
    if (begin < end) {
      address = begin;
      size = end - begin;
    }
  }
  log->Report(first, MakeAccess(event, index), address, size);
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

void FastTrack::OnPlain(const Event& event, std::uint64_t index) {
  if (analysis_.WantsCondensing()) [[unlikely]] {
    analysis_.Condense(synchronisation_.KnownToAll(), [this](ThreadId thread, Clock a, Clock b) {
      return synchronisation_.InOneEpoch(thread, a, b);
    });
  }
  FollowOthers(event, index);
  const auto now = synchronisation_.NowOf(event);
  if (analysis_.OnAccess(event, index, now.epoch, now.clock, &race_log_))
    CheckAgainstAtomics(event, index);
  OrderByRule(index);
}

void FastTrack::OnCell(const Event& event, std::uint64_t index, Cell cell) {
  FollowOthers(event, index);
  const auto now = synchronisation_.NowOf(event);
  analysis_.OnCell(*cell, event, index, now.epoch, now.clock, &race_log_);
  CheckAgainstAtomics(event, index);
  OrderByRule(index);
}

void FastTrack::OnPair(const Event& event, std::uint64_t index, Cell cells) {
  FollowOthers(event, index);
  const auto now = synchronisation_.NowOf(event);
  if (analysis_.OnPair(cells, event, index, now.epoch, now.clock, &race_log_))
    CheckAgainstAtomics(event, index);
  OrderByRule(index);
}

void FastTrack::ForgetKnownAtomics() {
  const VectorClock known = synchronisation_.KnownToAll();
  synchronisation_.NoteForgotten(known);
  ForgetAtomics(known);
  forget_atomics_at_ = ForgetAtomicsAt();
}

void FastTrack::OnMoment(ThreadId thread, std::uint64_t moment) {
  if (thread >= moments_.size()) moments_.resize(thread + 1);
  MomentHistory& moments = moments_[thread];
  // A late event's may be told after one of the monitor's own.
  moments.Add(std::max(moment, moments.latest_moment()),
              synchronisation_.LatestEpochOf(thread).clock());
}

void FastTrack::OnEarlier(const Event& earlier, std::uint64_t index) {
  if (earlier.thread >= moments_.size()) return;
  const std::optional<Clock> clock = moments_[earlier.thread].ClockAt(earlier.aux);
  if (!clock) return;
  Event event = earlier;
  event.kind = earlier.kind == EventKind::kEarlierWrite ? EventKind::kWrite : EventKind::kRead;
  event.aux = 0;
  const ThreadId chain = synchronisation_.LatestEpochOf(event.thread).thread();
  const Epoch epoch(chain, *clock);
  const Epoch moment(chain, epoch.clock() + 1);  // some time in it
  synchronisation_.NoteEarlierAccess(event);
  // Of two that read what a third one has repeated, the first one tells of that, and the second one
  // may have been handled by then.
  const auto knows = [&](ThreadId other) {
    return synchronisation_.HasEndedOrKnows(other, moment);
  };
  analysis_.Repeat(event, index, epoch, synchronisation_.ClockOf(event.thread), knows, &race_log_);
  CheckAgainstAtomics(event, index, knows);
  OrderByRule(index);
}

void FastTrack::OnTick(const Event& event, std::uint64_t index) {
  synchronisation_.RememberKnowledge(event.thread);
  synchronisation_.MoveTo(index);
  synchronisation_.Increment(event.thread);
  OnMoment(event.thread, event.aux);
}

void FastTrack::OnLateRelease(const Event& event) {
  if (event.thread >= moments_.size()) return;
  const Clock release = moments_[event.thread].ClockAfter(event.aux).value_or(
      synchronisation_.LatestEpochOf(event.thread).clock());
  synchronisation_.ReleaseLate(event.address, event.thread, release);
}

void FastTrack::OnClear(std::uint64_t address, std::uint64_t size) {
  analysis_.Clear(address, size);
  ClearAtomics(address, size);
  if (forget_atomics_from_ != 0)
    forget_atomics_at_ = std::min(forget_atomics_at_, ForgetAtomicsAt());
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

template std::unique_ptr<Detector> Make<FastTrack>(const DetectorOptions&);

}  // namespace trapline
