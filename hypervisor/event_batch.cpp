#include "hypervisor/event_batch.h"

#include <cstdint>
#include <utility>

namespace trapline {

void EventBatch::Tell() {
  observer_.OnCachedAccesses(events_);
  events_.clear();
  if (finishes_) observer_.FinishAccesses();
  NoteNewlyAtomic();
}

void EventBatch::Finish() {
  Tell();
  observer_.FinishAccesses();
  NoteNewlyAtomic();
  finishes_ = true;
}

std::vector<Range> EventBatch::TakeNewlyAtomicCode() {
  has_newly_atomic_ = false;
  return std::exchange(newly_atomic_, {});
}

void EventBatch::NoteNewlyAtomic() {
  for (const std::uint64_t ip : observer_.TakeNewlyAtomicCode()) {
    newly_atomic_.push_back({ip, ip + 1});
    has_newly_atomic_ = true;
  }
}

}  // namespace trapline
