// What counts: which accesses and which synchronisation a detector looks at, and under whose name.
// This is the interface by which a language runtime tells a low-level detector what its memory and
// its threads mean (LARD, sections 3 and 4.1).
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "detector/event.h"

namespace trapline {

// The extensions of LARD; switching one off gives the ablations of its section 5.2.
struct RuntimeInterface {
  bool untracked_accesses = true;         // off: AllMem, untracked accesses count too
  bool untracked_synchronisation = true;  // off: AllSync, untracked synchronisation orders too
  bool clear_history = true;              // off: NoClear
  bool copy_history = true;               // off: NoCopy
  bool thread_identity = true;            // off: threads are their carriers
};

// Follows kTrack, kUntrack, kTrackThread, kUntrackThread and kIdentity. Scopes do not nest: the
// last event of a thread counts. Not thread-safe.
class RuntimeScopes {
 public:
  explicit RuntimeScopes(const RuntimeInterface& interface)
      : interface_(interface), active_(!interface.thread_identity) {}

  // Whether anything is untracked or renamed at all; false = every event counts as it is.
  bool active() const { return active_; }

  void Apply(const Event& event);

  bool CountsAccesses(ThreadId thread) const;
  bool CountsSynchronisation(ThreadId thread) const;

  // The thread under whose name an event of logical thread `thread` counts.
  ThreadId NameOf(ThreadId thread) const;

  // Calls visit(address, size) for the tracked parts of [address, address+size), in ascending
  // order.
  template <class Visit>
  void ForEachTracked(std::uint64_t address, std::uint64_t size, Visit&& visit) const {
    const std::uint64_t end = address + size;
    if (interface_.untracked_accesses) {
      auto range = untracked_.upper_bound(address);
      if (range != untracked_.begin()) --range;
      for (; range != untracked_.end() && range->first < end; ++range) {
        if (range->second <= address) continue;
        if (range->first > address) visit(address, range->first - address);
        address = range->second;
        if (address >= end) return;
      }
    }
    if (address < end) visit(address, end - address);
  }

 private:
  void Untrack(std::uint64_t address, std::uint64_t end);
  void Track(std::uint64_t address, std::uint64_t end);

  static constexpr std::uint64_t kAccesses = 1;  // bits of Event::aux
  static constexpr std::uint64_t kSynchronisation = 2;

  RuntimeInterface interface_;
  bool active_;
  std::map<std::uint64_t, std::uint64_t> untracked_;           // start -> end, disjoint
  std::unordered_map<ThreadId, std::uint64_t> thread_scopes_;  // what does not count
  std::unordered_map<ThreadId, ThreadId> carriers_;
};

}  // namespace trapline
