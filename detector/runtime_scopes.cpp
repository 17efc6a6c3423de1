#include "detector/runtime_scopes.h"

#include <algorithm>
#include <iterator>

namespace trapline {

void RuntimeScopes::Apply(const Event& event) {
  switch (event.kind) {
    case EventKind::kUntrack:
      Untrack(event.address, event.address + event.size);
      active_ = true;
      break;
    case EventKind::kTrack:
      Track(event.address, event.address + event.size);
      break;
    case EventKind::kUntrackThread:
      thread_scopes_[event.thread] |= event.aux;
      active_ = true;
      break;
    case EventKind::kTrackThread:
      thread_scopes_[event.thread] &= ~event.aux;
      break;
    case EventKind::kIdentity:
      carriers_[event.thread] = event.other;
      break;
    default:
      break;
  }
}

bool RuntimeScopes::CountsAccesses(ThreadId thread) const {
  if (!interface_.untracked_accesses) return true;
  const auto found = thread_scopes_.find(thread);
  return found == thread_scopes_.end() || (found->second & kAccesses) == 0;
}

bool RuntimeScopes::CountsSynchronisation(ThreadId thread) const {
  if (!interface_.untracked_synchronisation) return true;
  const auto found = thread_scopes_.find(thread);
  return found == thread_scopes_.end() || (found->second & kSynchronisation) == 0;
}

ThreadId RuntimeScopes::NameOf(ThreadId thread) const {
  if (interface_.thread_identity) return thread;
  const auto found = carriers_.find(thread);
  return found == carriers_.end() ? thread : found->second;
}

void RuntimeScopes::Untrack(std::uint64_t address, std::uint64_t end) {
  if (address >= end) return;
  Track(address, end);
  untracked_[address] = end;
}

void RuntimeScopes::Track(std::uint64_t address, std::uint64_t end) {
  if (address >= end) return;
  auto range = untracked_.lower_bound(address);
  if (range != untracked_.begin() && std::prev(range)->second > address) --range;
  while (range != untracked_.end() && range->first < end) {
    const auto [from, to] = *range;
    range = untracked_.erase(range);
    if (from < address) untracked_[from] = address;
    if (to > end) untracked_[end] = to;
  }
}

}  // namespace trapline
