#include "tests/support/reference.h"

#include <algorithm>
#include <bitset>
#include <stdexcept>

namespace trapline {
namespace {

constexpr std::size_t kMaxEvents = 512;
using EventSet = std::bitset<kMaxEvents>;

class Reference {
 public:
  Reference(const std::vector<Event>& trace, ReferenceOrder order)
      : trace_(trace), lock_edges_(order == ReferenceOrder::kHappensBefore) {}

  ReferenceRaces Run() {
    if (trace_.size() > kMaxEvents) throw std::length_error("trace too long for the reference");
    before_.resize(trace_.size());
    for (std::size_t i = 0; i < trace_.size(); ++i) {
      AddEdges(i);
      locks_.push_back(IsAccess(trace_[i].kind) ? Locks(i) : std::map<std::uint64_t, bool>{});
      Remember(i);
    }
    return std::move(races_);
  }

 private:
  void Edge(std::size_t from, std::size_t to) {
    before_[to] |= before_[from];
    before_[to].set(from);
  }

  // All that directly happens before event i.
  void AddEdges(std::size_t i) {
    const Event& e = trace_[i];
    for (std::size_t j = 0; j < i; ++j) {
      const Event& f = trace_[j];
      if (f.thread == e.thread) Edge(j, i);
      if (f.kind == EventKind::kFork && f.other == e.thread) Edge(j, i);
      if (e.kind == EventKind::kJoin && f.thread == e.other) Edge(j, i);
      if (f.address != e.address) continue;
      const bool released = f.kind == EventKind::kRelease;
      const bool released_shared = f.kind == EventKind::kReleaseShared;
      if (lock_edges_ && e.kind == EventKind::kAcquire && (released || released_shared)) Edge(j, i);
      if (lock_edges_ && e.kind == EventKind::kAcquireShared && released) Edge(j, i);
      if (e.kind == EventKind::kHappensAfter && f.kind == EventKind::kHappensBefore) Edge(j, i);
    }
    if (e.kind == EventKind::kBarrierLeave) {
      for (const std::size_t enter : Round(i)) Edge(enter, i);
    }
    if (IsAtomic(e.kind) && e.kind != EventKind::kAtomicWrite && Acquires(e.order)) {
      for (std::uint64_t byte = e.address; byte < e.address + e.size; ++byte) {
        for (const std::size_t release : releases_[byte]) Edge(release, i);
      }
    }
  }

  // The enters of the round that event i leaves: rounds end with the first leave of one who entered
  // them.
  std::vector<std::size_t> Round(std::size_t i) const {
    std::vector<std::vector<std::size_t>> rounds(1);
    std::map<ThreadId, std::size_t> round_of;
    for (std::size_t j = 0; j <= i; ++j) {
      const Event& f = trace_[j];
      if (f.address != trace_[i].address) continue;
      if (f.kind == EventKind::kBarrierEnter) {
        rounds.back().push_back(j);
        round_of[f.thread] = rounds.size() - 1;
      } else if (f.kind == EventKind::kBarrierLeave) {
        if (j == i) return rounds[round_of[f.thread]];
        if (round_of[f.thread] == rounds.size() - 1) rounds.emplace_back();
      }
    }
    return {};
  }

  // Locks that are held at event i: name and whether held exclusively.
  std::map<std::uint64_t, bool> Locks(std::size_t i) const {
    std::map<std::uint64_t, int> exclusive;
    std::map<std::uint64_t, int> shared;
    for (std::size_t j = 0; j < i; ++j) {
      const Event& f = trace_[j];
      if (f.thread != trace_[i].thread) continue;
      exclusive[f.address] += (f.kind == EventKind::kAcquire) - (f.kind == EventKind::kRelease);
      shared[f.address] +=
          (f.kind == EventKind::kAcquireShared) - (f.kind == EventKind::kReleaseShared);
    }
    std::map<std::uint64_t, bool> locks;
    for (const auto& [lock, count] : exclusive) {
      if (count > 0) locks[lock] = true;
    }
    for (const auto& [lock, count] : shared) {
      if (count > 0) locks.try_emplace(lock, false);
    }
    return locks;
  }

  bool Race(std::size_t i, std::size_t j) const {
    const Event& a = trace_[i];
    const Event& b = trace_[j];
    if (a.thread == b.thread || before_[j][i]) return false;
    if (!IsWrite(a.kind) && !IsWrite(b.kind)) return false;
    if (IsAtomic(a.kind) && IsAtomic(b.kind)) return false;
    if (lock_edges_) return true;
    // Who holds a lock on its shared side keeps out who holds it exclusively, whatever either does.
    return std::none_of(locks_[i].begin(), locks_[i].end(), [&](const auto& held) {
      const auto other = locks_[j].find(held.first);
      return other != locks_[j].end() && (held.second || other->second);
    });
  }

  void Remember(std::size_t i) {
    const Event& e = trace_[i];
    if (IsAccess(e.kind)) {
      for (std::uint64_t byte = e.address; byte < e.address + e.size; ++byte) {
        for (const std::size_t prior : accesses_[byte]) {
          if (!Race(prior, i)) continue;
          if (!races_.incomparable.contains(byte)) races_.first_race.try_emplace(byte, i);
          racy_.insert(byte);
          races_.pairs.insert({prior, i});
          races_.locations.insert(std::minmax(trace_[prior].ip, e.ip));
        }
        accesses_[byte].push_back(i);
        if (IsAtomic(e.kind) && e.kind != EventKind::kAtomicRead && Releases(e.order)) {
          if (e.kind == EventKind::kAtomicWrite) releases_[byte].clear();
          releases_[byte].push_back(i);
        }
      }
    } else if (e.kind == EventKind::kClearHistory) {
      for (std::uint64_t byte = e.address; byte < e.address + e.size; ++byte) {
        accesses_.erase(byte);
        racy_.erase(byte);
        releases_.erase(byte);
      }
    } else if (e.kind == EventKind::kCopyHistory) {
      const auto accesses = accesses_;
      const auto releases = releases_;
      const auto racy = racy_;
      for (std::uint64_t offset = 0; offset < e.size; ++offset) {
        const std::uint64_t byte = e.address + offset;
        const std::uint64_t source = e.aux + offset;
        accesses_[byte] = accesses.contains(source) ? accesses.at(source) : History{};
        releases_[byte] = releases.contains(source) ? releases.at(source) : History{};
        racy_.erase(byte);
        if (!racy.contains(source)) continue;
        racy_.insert(byte);
        if (!races_.first_race.contains(byte)) races_.incomparable.insert(byte);
      }
    }
  }

  const std::vector<Event>& trace_;
  bool lock_edges_;
  std::vector<EventSet> before_;
  std::vector<std::map<std::uint64_t, bool>> locks_;
  using History = std::vector<std::size_t>;
  std::map<std::uint64_t, History> accesses_;
  std::map<std::uint64_t, History> releases_;
  std::set<std::uint64_t> racy_;  // bytes whose present history has a race
  ReferenceRaces races_;
};

}  // namespace

ReferenceRaces FindRaces(const std::vector<Event>& trace, ReferenceOrder order) {
  return Reference(trace, order).Run();
}

std::map<std::uint64_t, std::size_t> FirstRaces(const Detector& detector) {
  std::map<std::uint64_t, std::size_t> first;
  for (const Race& race : detector.races()) {
    for (std::uint64_t byte = race.address; byte < race.address + race.size; ++byte) {
      first.try_emplace(byte, race.second.index);
    }
  }
  return first;
}

}  // namespace trapline
