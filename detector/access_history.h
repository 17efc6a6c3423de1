// Past accesses to one cell, at most one for each thread: the vector clocks R_x and W_x of the
// papers, stored sparsely and together with what a report needs to know.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "detector/detector.h"
#include "detector/epoch.h"
#include "detector/lockset.h"

namespace trapline {

// An access and when it happened; `lockset` only where the detector works with locksets.
struct TimedAccess {
  Epoch epoch;
  LocksetId lockset = kEmptyLockset;
  Access access;
};

class AccessHistory {
 public:
  // The last access of `thread`, or null.
  TimedAccess* Find(ThreadId thread) {
    for (TimedAccess& entry : entries_) {
      if (entry.epoch.thread() == thread) return &entry;
    }
    return nullptr;
  }

  // Whether the last access of the epoch's thread lies in that epoch.
  bool Contains(Epoch epoch) const {
    return std::any_of(entries_.begin(), entries_.end(),
                       [&](const TimedAccess& entry) { return entry.epoch == epoch; });
  }

  // Makes `entry` the last access of its thread.
  void Put(const TimedAccess& entry) {
    if (TimedAccess* old = Find(entry.epoch.thread())) {
      *old = entry;
    } else {
      entries_.push_back(entry);
    }
  }

  // Makes `entry` the only access.
  void Reset(const TimedAccess& entry) { entries_.assign(1, entry); }

  void Remove(ThreadId thread) {
    std::erase_if(entries_,
                  [&](const TimedAccess& entry) { return entry.epoch.thread() == thread; });
  }

  void Clear() { entries_.clear(); }
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }

  std::vector<TimedAccess>::const_iterator begin() const { return entries_.begin(); }
  std::vector<TimedAccess>::const_iterator end() const { return entries_.end(); }

 private:
  std::vector<TimedAccess> entries_;
};

// The last accesses of each thread by kind, for detectors whose verdict does not name the other
// access.
class LastAccesses {
 public:
  void Put(const TimedAccess& entry) {
    histories_[2 * IsAtomic(entry.access.kind) + IsWrite(entry.access.kind)].Put(entry);
  }

  // The latest access of another thread that conflicts with `access`, or null.
  const Access* LatestConflict(const Access& access) const;

 private:
  std::array<AccessHistory, 4> histories_;  // reads, writes, atomic reads, atomic writes
};

}  // namespace trapline
