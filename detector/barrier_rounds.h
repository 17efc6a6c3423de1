// Which round of a barrier a thread enters and leaves.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "detector/event.h"

namespace trapline {

// Whoever leaves a barrier leaves after all that entered the same round. The events do not say how
// many threads a barrier waits for, but nobody leaves before the round is full: the first to leave
// closes it, and who enters afterwards belongs to the next one. Not thread-safe.
class BarrierRounds {
 public:
  // The round that `thread` enters now, from 0.
  std::uint64_t Enter(std::uint64_t barrier, ThreadId thread) {
    Barrier& state = barriers_[barrier];
    state.round_of[thread] = state.open_round;
    return state.open_round;
  }

  // The round that `thread` leaves now; false if it is in none.
  bool Leave(std::uint64_t barrier, ThreadId thread, std::uint64_t* round) {
    Barrier& state = barriers_[barrier];
    const auto found = state.round_of.find(thread);
    if (found == state.round_of.end()) return false;
    *round = found->second;
    state.round_of.erase(found);
    if (*round == state.open_round) ++state.open_round;
    return true;
  }

  // Whether some thread is still to leave `round`.
  bool IsInUse(std::uint64_t barrier, std::uint64_t round) const {
    const auto found = barriers_.find(barrier);
    if (found == barriers_.end()) return false;
    for (const auto& [thread, entered] : found->second.round_of) {
      if (entered == round) return true;
    }
    return false;
  }

 private:
  struct Barrier {
    std::uint64_t open_round = 0;
    std::unordered_map<ThreadId, std::uint64_t> round_of;  // threads inside
  };
  std::unordered_map<std::uint64_t, Barrier> barriers_;
};

}  // namespace trapline
