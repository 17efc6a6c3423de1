// Which accesses a log needs if it is to hold only the first of each thread, place and epoch.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "detector/event.h"

namespace trapline {

// A place is an instruction together with the bytes it touches, and an epoch lasts until the
// thread's next synchronisation (of any kind, so that its lockset is the same too). FastTrack
// ignores accesses that another one of the same thread and epoch has gone before (rules "read same
// epoch", "write same epoch"), so every location that races in the whole log races in the filtered
// one; further pairs of places may be missing where others touched the location in between.
// Atomics synchronise and always pass.
class FirstAccessFilter {
 public:
  // Whether `event`, the next of the execution, is to be recorded.
  bool Passes(const Event& event) {
    if (IsPlainAccess(event.kind)) {
      Epoch& epoch = epochs_[event.thread];
      // Forgetting costs no more than a repeated record.
      constexpr std::size_t kMost = 1 << 16;
      if (epoch.clearing != clearings_ || epoch.seen.size() >= kMost) epoch.seen.clear();
      epoch.clearing = clearings_;
      return epoch.seen.insert({event.ip, event.address, event.size, event.kind}).second;
    }
    if (event.kind == EventKind::kThreadEnd) {
      epochs_.erase(event.thread);
    } else if (IsSynchronisation(event.kind)) {
      epochs_[event.thread].seen.clear();
    } else if (event.kind == EventKind::kClearHistory || event.kind == EventKind::kCopyHistory) {
      ++clearings_;  // what was recorded of those bytes is forgotten
    }
    return true;
  }

  void Clear() { epochs_.clear(); }

 private:
  struct Place {
    std::uint64_t ip, address, size;
    EventKind kind;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Hash {
    std::size_t operator()(const Place& place) const {
      std::uint64_t hash = place.ip * 0x9e3779b97f4a7c15ull + place.address;
      hash = (hash ^ hash >> 29) * 0x9e3779b97f4a7c15ull + place.size * 2 +
             static_cast<std::uint64_t>(place.kind);
      return hash ^ hash >> 32;
    }
  };
  struct Epoch {
    std::uint64_t clearing = 0;
    std::unordered_set<Place, Hash> seen;
  };

  std::unordered_map<ThreadId, Epoch> epochs_;
  std::uint64_t clearings_ = 0;
};

}  // namespace trapline
