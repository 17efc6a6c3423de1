// Eraser's state machine for one cell (Savage et al., TOCS 1997, figure 4; AccuLock, section II-C).
#pragma once

#include "detector/event.h"
#include "detector/lockset.h"

namespace trapline {

// Unsound by design: what the first thread does is not checked (initialisation), nor are reads
// before the first write by another thread (read-shared data).
class EraserState {
 public:
  // An access of `thread` under `lockset`. Returns whether it violates the locking discipline.
  bool OnAccess(ThreadId thread, bool is_write, LocksetId lockset, LocksetTable* table) {
    switch (phase_) {
      case Phase::kVirgin:
        phase_ = Phase::kExclusive;
        owner_ = thread;
        return false;
      case Phase::kExclusive:
        if (thread == owner_) return false;
        phase_ = is_write ? Phase::kSharedModified : Phase::kShared;
        candidates_ = lockset;
        break;
      case Phase::kShared:
        if (is_write) phase_ = Phase::kSharedModified;
        candidates_ = table->Intersect(candidates_, lockset);
        break;
      case Phase::kSharedModified:
        candidates_ = table->Intersect(candidates_, lockset);
        break;
    }
    return phase_ == Phase::kSharedModified && candidates_ == kEmptyLockset;
  }

 private:
  enum class Phase : std::uint8_t { kVirgin, kExclusive, kShared, kSharedModified };

  Phase phase_ = Phase::kVirgin;
  ThreadId owner_ = 0;                    // kExclusive: the only thread so far
  LocksetId candidates_ = kEmptyLockset;  // C(v), from kShared on
};

}  // namespace trapline
