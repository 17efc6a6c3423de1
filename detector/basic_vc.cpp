#include "detector/basic_vc.h"

#include "detector/factory.h"

namespace trapline {

void BasicVc::OnPlain(const Event& event, std::uint64_t index) {
  const TimedAccess now{synchronisation_.EpochOf(event.thread), kEmptyLockset,
                        MakeAccess(event, index)};
  const bool is_write = event.kind == EventKind::kWrite;
  shadow_.ForEach(event.address, event.size,
                  [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
                    Check(cell.writes, event, index, address, size);               // W_x ⊑ C_t
                    if (is_write) Check(cell.reads, event, index, address, size);  // R_x ⊑ C_t
                    (is_write ? cell.writes : cell.reads).Put(now);
                  });
  CheckAgainstAtomics(event, index);
}

void BasicVc::CheckAgainstPlain(const Event& atomic, std::uint64_t index) {
  shadow_.ForEachExisting(atomic.address, atomic.size,
                          [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
                            Check(cell.writes, atomic, index, address, size);
                            if (IsWrite(atomic.kind))
                              Check(cell.reads, atomic, index, address, size);
                          });
}

void BasicVc::Check(const AccessHistory& history, const Event& event, std::uint64_t index,
                    std::uint64_t address, std::uint64_t size) {
  ++comparisons_;
  const VectorClock& clock = synchronisation_.ClockOf(event.thread);
  for (const TimedAccess& prior : history) {
    if (!clock.Covers(prior.epoch)) {
      race_log_.Report(prior.access, MakeAccess(event, index), address, size);
    }
  }
}

void BasicVc::OnClear(std::uint64_t address, std::uint64_t size) {
  shadow_.Clear(address, size);
  ClearAtomics(address, size);
}

void BasicVc::OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
  shadow_.Copy(destination, source, size);
  CopyAtomics(destination, source, size);
}

std::vector<Statistic> BasicVc::statistics() const {
  return {{"vector clock comparisons", comparisons_},
          {"vector clock operations", synchronisation_.operations()}};
}

template std::unique_ptr<Detector> Make<BasicVc>(const DetectorOptions&);

}  // namespace trapline
