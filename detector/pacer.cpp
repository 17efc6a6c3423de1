#include "detector/pacer.h"

#include "detector/factory.h"

namespace trapline {

void Pacer::SetSampling(bool sampling) {
  PacerClocks& clocks = synchronisation_.clocks();
  if (clocks.sampling == sampling) return;
  clocks.sampling = sampling;
  // sbegin: what is sampled before the next synchronisation must not look older than it is.
  if (sampling) synchronisation_.IncrementAll();
}

void Pacer::StartPeriod(std::uint64_t index) {
  const std::uint64_t this_period = index / period_;
  // One draw a period, whether or not an event of it reached the detector.
  bool sampled = false;
  for (std::uint64_t period = next_period_ / period_; period <= this_period; ++period) {
    sampled = std::uniform_real_distribution<double>(0, 1)(random_) < rate_;
  }
  next_period_ = (this_period + 1) * period_;
  SetSampling(sampled);
}

void Pacer::OnSampling(bool begins) {
  next_period_ = ~std::uint64_t{0};  // from now on the stream says when
  SetSampling(begins);
}

void Pacer::OnSynchronise(const Event& event, std::uint64_t index) {
  AdvanceTo(index);
  synchronisation_.Apply(event);
}

void Pacer::OnAtomic(const Event& event, std::uint64_t index, bool access_counts,
                     bool synchronises) {
  AdvanceTo(index);
  HappensBeforeDetector::OnAtomic(event, index, access_counts, synchronises);
}

void Pacer::OnPlain(const Event& event, std::uint64_t index) {
  AdvanceTo(index);
  ++accesses_;
  const TimedAccess now{synchronisation_.EpochOf(event.thread), kEmptyLockset,
                        MakeAccess(event, index)};
  const auto visit = [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
    if (event.kind == EventKind::kWrite) {
      Write(cell, now, address, size);
    } else {
      Read(cell, now, address, size);
    }
  };
  if (sampling()) {
    ++sampled_;
    shadow_.ForEach(event.address, event.size, visit);
  } else {
    bool known = false;
    shadow_.ForEachExisting(event.address, event.size,
                            [&](Cell& cell, std::uint64_t, std::uint64_t) {
                              known |= !cell.reads.empty() || !cell.writes.empty();
                            });
    if (known) {
      shadow_.ForEach(event.address, event.size, visit);
    } else {
      ++untouched_;
    }
  }
  CheckAgainstAtomics(event, index);
}

// Algorithm 12
void Pacer::Read(Cell& cell, const TimedAccess& now, std::uint64_t address, std::uint64_t size) {
  if (cell.reads.size() == 1 && cell.reads.Contains(now.epoch)) return;  // same epoch
  const VectorClock& clock = synchronisation_.ClockOf(now.access.thread);
  Check(cell.writes, now.access, address, size);
  if (cell.reads.size() <= 1 && (cell.reads.empty() || clock.Covers(cell.reads.begin()->epoch))) {
    if (sampling()) {
      cell.reads.Reset(now);  // overwrite the read map
    } else {
      discarded_ += cell.reads.size();
      cell.reads.Clear();  // discard the read map
    }
  } else if (sampling()) {
    cell.reads.Put(now);  // update R_f[t]
  } else {
    discarded_ += cell.reads.Find(now.access.thread) != nullptr;
    cell.reads.Remove(now.access.thread);  // discard R_f[t] only
  }
}

// Algorithm 13
void Pacer::Write(Cell& cell, const TimedAccess& now, std::uint64_t address, std::uint64_t size) {
  if (cell.writes.Contains(now.epoch)) return;  // same epoch
  Check(cell.writes, now.access, address, size);
  Check(cell.reads, now.access, address, size);
  if (sampling()) {
    cell.writes.Reset(now);  // update the write epoch
  } else {
    discarded_ += cell.writes.size() + cell.reads.size();
    cell.writes.Clear();  // discard the write epoch
  }
  cell.reads.Clear();  // discard the read map
}

void Pacer::CheckAgainstPlain(const Event& atomic, std::uint64_t index) {
  const Access now = MakeAccess(atomic, index);
  shadow_.ForEachExisting(atomic.address, atomic.size,
                          [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
                            Check(cell.writes, now, address, size);
                            if (IsWrite(atomic.kind)) Check(cell.reads, now, address, size);
                          });
}

void Pacer::Check(const AccessHistory& history, const Access& now, std::uint64_t address,
                  std::uint64_t size) {
  const VectorClock& clock = synchronisation_.ClockOf(now.thread);
  for (const TimedAccess& prior : history) {
    if (!clock.Covers(prior.epoch)) race_log_.Report(prior.access, now, address, size);
  }
}

void Pacer::OnClear(std::uint64_t address, std::uint64_t size) {
  shadow_.Clear(address, size);
  ClearAtomics(address, size);
}

void Pacer::OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
  shadow_.Copy(destination, source, size);
  CopyAtomics(destination, source, size);
}

std::vector<Statistic> Pacer::statistics() const {
  const PacerClocks::Counts& counts = synchronisation_.clocks().counts;
  return {{"sampled accesses", sampled_, accesses_},
          {"accesses to unsampled memory", untouched_, accesses_},
          {"accesses discarded", discarded_},
          {"clock copies, shallow", counts.shallow_copies},
          {"clock copies, deep", counts.deep_copies},
          {"clock joins, fast", counts.fast_joins},
          {"clock joins, slow", counts.slow_joins}};
}

template std::unique_ptr<Detector> Make<Pacer>(const DetectorOptions&);

}  // namespace trapline
