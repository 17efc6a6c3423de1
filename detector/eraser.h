// Eraser: the lockset discipline behind a state machine for initialisation and read-shared data
// (Savage et al., TOCS 1997).
#pragma once

#include "detector/eraser_state.h"
#include "detector/lockset_detector.h"

namespace trapline {

struct EraserCell {
  EraserState state;
  bool OnAccess(const Event& event, LocksetId lockset, LocksetTable* table) {
    return state.OnAccess(event.thread, IsWrite(event.kind), lockset, table);
  }
};

class Eraser final : public LocksetDetector<Eraser, EraserCell> {
 public:
  using LocksetDetector::LocksetDetector;
  std::string_view name() const override { return "eraser"; }
};

// LOCKSET: the same discipline without the state machine (AccuLock, Figure 3); what Theorem 1
// compares with. A violation that no conflicting access of another thread goes with is not
// reported.
struct LocksetCell {
  bool accessed = false;
  LocksetId candidates = kEmptyLockset;  // CL_x
  bool OnAccess(const Event& event, LocksetId lockset, LocksetTable* table);
};

class Lockset final : public LocksetDetector<Lockset, LocksetCell> {
 public:
  using LocksetDetector::LocksetDetector;
  std::string_view name() const override { return "lockset"; }
};

}  // namespace trapline
