// The vector clocks of threads that have ended, for whoever joins them. Nobody ever joins a
// detached one, and of a program that has made n threads each clock has n times; but the next one
// to end knows little that the one before did not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "detector/epoch.h"
#include "detector/vector_clock.h"

namespace trapline {

// Keeps a whole clock now and then, and of the others what is different from the last whole one:
// where each differs by one time more than the one before, some 16 * sqrt(n) bytes for a thread.
// Not thread-safe.
class EndedClocks {
 public:
  // Takes the clock of the thread, of which none is kept. Takes time in proportion to its size.
  void Put(ThreadId thread, VectorClock clock) {
    Kept kept{whole_, {}};
    if (whole_ != nullptr) {
      for (ThreadId other = 0; other < std::max(clock.size(), whole_->size()); ++other) {
        if (clock[other] != (*whole_)[other]) kept.differences.push_back({other, clock[other]});
      }
    }
    differences_ += kept.differences.size();
    if (whole_ == nullptr || differences_ * sizeof(Difference) > whole_->size() * sizeof(Clock)) {
      whole_ = std::make_shared<const VectorClock>(std::move(clock));
      kept = {whole_, {}};
      differences_ = 0;
    }
    kept.differences.shrink_to_fit();
    kept_.insert_or_assign(thread, std::move(kept));
  }

  // The clock that was put there, which is not kept any longer.
  VectorClock Take(ThreadId thread) {
    const auto found = kept_.find(thread);
    if (found == kept_.end()) return {};
    VectorClock clock = *found->second.whole;
    for (const Difference& difference : found->second.differences)
      clock.Set(difference.thread, difference.clock);
    kept_.erase(found);
    return clock;
  }

 private:
  struct Difference {
    ThreadId thread;
    Clock clock;
  };
  struct Kept {
    std::shared_ptr<const VectorClock> whole;
    std::vector<Difference> differences;
  };

  std::unordered_map<ThreadId, Kept> kept_;
  std::shared_ptr<const VectorClock> whole_;  // the last one
  std::size_t differences_ = 0;               // kept since
};

}  // namespace trapline
