#include "detector/djit_plus.h"

#include "detector/factory.h"

namespace trapline {

void DjitPlus::OnPlain(const Event& event, std::uint64_t index) {
  const Epoch epoch = synchronisation_.EpochOf(event.thread);
  const TimedAccess now{epoch, kEmptyLockset, MakeAccess(event, index)};
  const bool is_write = event.kind == EventKind::kWrite;
  bool checked = false;
  shadow_.ForEach(event.address, event.size,
                  [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
                    ++(is_write ? writes_ : reads_);
                    AccessHistory& own = is_write ? cell.writes : cell.reads;
                    if (own.Contains(epoch)) {
                      // [DJIT+ READ SAME EPOCH], [DJIT+ WRITE SAME EPOCH]
                      ++(is_write ? write_same_epoch_ : read_same_epoch_);
                      return;
                    }
                    // [DJIT+ READ] W_x ⊑ C_t   [DJIT+ WRITE] W_x ⊑ C_t, R_x ⊑ C_t
                    checked = true;
                    Check(cell.writes, event, index, address, size);
                    if (is_write) Check(cell.reads, event, index, address, size);
                    own.Put(now);
                  });
  if (checked) CheckAgainstAtomics(event, index);
}

void DjitPlus::CheckAgainstPlain(const Event& atomic, std::uint64_t index) {
  shadow_.ForEachExisting(atomic.address, atomic.size,
                          [&](Cell& cell, std::uint64_t address, std::uint64_t size) {
                            Check(cell.writes, atomic, index, address, size);
                            if (IsWrite(atomic.kind))
                              Check(cell.reads, atomic, index, address, size);
                          });
}

void DjitPlus::Check(const AccessHistory& history, const Event& event, std::uint64_t index,
                     std::uint64_t address, std::uint64_t size) {
  const VectorClock& clock = synchronisation_.ClockOf(event.thread);
  for (const TimedAccess& prior : history) {
    if (!clock.Covers(prior.epoch)) {
      race_log_.Report(prior.access, MakeAccess(event, index), address, size);
    }
  }
}

void DjitPlus::OnClear(std::uint64_t address, std::uint64_t size) {
  shadow_.Clear(address, size);
  ClearAtomics(address, size);
}

void DjitPlus::OnCopy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
  shadow_.Copy(destination, source, size);
  CopyAtomics(destination, source, size);
}

std::vector<Statistic> DjitPlus::statistics() const {
  return {{"read same epoch", read_same_epoch_, reads_},
          {"read", reads_ - read_same_epoch_, reads_},
          {"write same epoch", write_same_epoch_, writes_},
          {"write", writes_ - write_same_epoch_, writes_},
          {"vector clock operations", synchronisation_.operations()}};
}

template std::unique_ptr<Detector> Make<DjitPlus>(const DetectorOptions&);

}  // namespace trapline
