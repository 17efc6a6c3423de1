#include "detector/tree_filter.h"

#include <algorithm>

namespace trapline {
namespace {

constexpr std::uint64_t kPageSize = 4096;

std::string_view Prefix(TreeMode mode) {
  switch (mode) {
    case TreeMode::kThesis:
      return "tree+";
    case TreeMode::kSpans:
      return "tree-spans+";
    case TreeMode::kExact:
      return "tree-exact+";
  }
  return "";
}

}  // namespace

TreeFilter::TreeFilter(std::unique_ptr<Detector> inner, TreeMode mode)
    : inner_(std::move(inner)),
      mode_(mode),
      name_(std::string(Prefix(mode)) + std::string(inner_->name())) {}

std::size_t TreeFilter::ContextHash::operator()(const Context& context) const {
  return HashOf(context.ip, context.address, context.size, context.any, context.exclusive,
                context.history, context.kind);
}

std::size_t TreeFilter::SpanHash::operator()(const SpanKey& key) const {
  return HashOf(key.address, key.size, key.thread, key.kind);
}

void TreeFilter::OnEvent(const Event& event, std::uint64_t index) {
  if (!IsRedundant(event)) inner_->OnEvent(event, index);
}

void TreeFilter::OnEvents(std::span<const Event> events, std::uint64_t first_index) {
  for (const Event& event : events) OnEvent(event, first_index++);
}

std::vector<Statistic> TreeFilter::statistics() const {
  std::vector<Statistic> all{{"TREE: accesses skipped", skipped_, accesses_}};
  for (Statistic& statistic : inner_->statistics()) all.push_back(std::move(statistic));
  return all;
}

// Algorithm 1
bool TreeFilter::IsRedundant(const Event& event) {
  if (!IsPlainAccess(event.kind)) {
    Follow(event);
    return false;
  }
  ++accesses_;
  const bool redundant = DetectRedundancy(event);
  skipped_ += redundant;
  StateOf(event.thread).message = 0;
  return redundant;
}

// Algorithm 2
bool TreeFilter::DetectRedundancy(const Event& event) {
  const std::uint64_t number = event.address / kPageSize;
  if (event.address % kPageSize + event.size > kPageSize)
    return false;  // of two pages: not worth it
  Page& page = pages_[number];
  const Context context{.ip = event.ip,
                        .address = event.address,
                        .size = event.size,
                        .any = held_.ForRead(event.thread),
                        .exclusive = held_.ForWrite(event.thread),
                        .history = StateOf(event.thread).history,
                        .kind = event.kind};
  Seen& seen = page.contexts[context];
  if (std::find(seen.threads, seen.threads + seen.count, event.thread) !=
      seen.threads + seen.count) {
    return true;  // intra-thread redundancy
  }
  if (seen.count == Seen::kDepth) return true;  // inter-thread redundancy
  seen.threads[seen.count++] = event.thread;
  return mode_ == TreeMode::kSpans && InSameSpan(event, &page);
}

bool TreeFilter::InSameSpan(const Event& event, Page* page) {
  const std::uint64_t span = StateOf(event.thread).span;
  std::uint64_t& last = page->spans[{event.address, event.size, event.thread, event.kind}];
  if (last == span) return true;
  last = span;
  return false;
}

TreeFilter::ThreadState& TreeFilter::StateOf(ThreadId thread) {
  if (thread >= threads_.size()) threads_.resize(std::size_t{thread} + 1);
  ThreadState& state = threads_[thread];
  if (!state.known) {
    state.known = true;
    // Without inter-thread redundancy no two threads share a context.
    if (mode_ == TreeMode::kExact) AppendToHistory(&state, 2 * ++messages_);
  }
  return state;
}

void TreeFilter::AppendToHistory(ThreadState* state, std::uint64_t entry) {
  if (state->last == entry) return;
  state->last = entry;
  state->history = histories_.NumberOf(state->history, entry);
}

std::uint64_t TreeFilter::Send(ThreadId thread) {
  ThreadState& state = StateOf(thread);
  if (state.message == 0) state.message = ++messages_;
  ++state.span;
  AppendToHistory(&state, 2 * state.message);
  return state.message;
}

void TreeFilter::Receive(ThreadId thread, std::uint64_t message) {
  ThreadState& state = StateOf(thread);
  state.message = 0;
  AppendToHistory(&state, 2 * message + 1);
}

void TreeFilter::Follow(const Event& event) {
  switch (event.kind) {
    case EventKind::kAtomicRead:
    case EventKind::kAtomicWrite:
    case EventKind::kAtomicRmw:
      FollowAtomic(event);
      break;
    case EventKind::kAcquire:
    case EventKind::kAcquireShared:
      held_.Apply(event);
      break;
    case EventKind::kRelease:
    case EventKind::kReleaseShared:
      held_.Apply(event);
      if (mode_ == TreeMode::kExact) {
        Send(event.thread);
      } else {
        ++StateOf(event.thread).span;
      }
      break;
    case EventKind::kHappensBefore:
      Send(event.thread);
      key_messages_[event.address] = ++messages_;
      break;
    case EventKind::kHappensAfter:
      if (const auto found = key_messages_.find(event.address); found != key_messages_.end()) {
        Receive(event.thread, found->second);
      }
      break;
    case EventKind::kFork:
      Receive(event.other, Send(event.thread));
      break;
    case EventKind::kJoin:
      Receive(event.thread, Send(event.other));
      break;
    case EventKind::kBarrierEnter:
    case EventKind::kBarrierLeave:
      FollowBarrier(event);
      break;
    case EventKind::kClearHistory:
    case EventKind::kCopyHistory:
      Forget(event.address, event.size);
      ++atomic_generation_;
      break;
    case EventKind::kIdentity:
    case EventKind::kTrack:
    case EventKind::kUntrack:
    case EventKind::kTrackThread:
    case EventKind::kUntrackThread:
    case EventKind::kSamplingBegin:
    case EventKind::kSamplingEnd:
      // What went through so far may not have counted.
      pages_.clear();
      break;
    case EventKind::kRead:
    case EventKind::kWrite:
    case EventKind::kThreadEnd:
    case EventKind::kMissingBegin:
    case EventKind::kMissingEnd:
    case EventKind::kMoment:
    case EventKind::kEarlierRead:
    case EventKind::kEarlierWrite:
    case EventKind::kJoinBegin:
    case EventKind::kTick:
    case EventKind::kLateRelease:
      break;
  }
}

void TreeFilter::FollowAtomic(const Event& event) {
  constexpr std::uint64_t kWordSize = 8;
  if (event.size == 0) return;
  const std::uint64_t first = event.address / kWordSize;
  const std::uint64_t last = first + (event.address % kWordSize + event.size - 1) / kWordSize;
  if (last - first > kPageSize) return;  // no atomic access is that long
  StateOf(event.thread).message = 0;     // the access itself
  for (std::uint64_t word = first; word <= last; ++word) {
    if (event.kind != EventKind::kAtomicWrite && Acquires(event.order)) {
      const auto found = atomic_messages_.find(word);
      const std::uint64_t release = found == atomic_messages_.end() ? 0 : found->second;
      // Which bytes were read decides what was received.
      const std::uint64_t reception = receptions_.NumberOf(HashOf(release, atomic_generation_),
                                                           HashOf(event.address, event.size, word));
      // Numbers of messages and of receptions must not meet.
      Receive(event.thread, reception << 1 | std::uint64_t{1} << 62);
    }
    if (event.kind != EventKind::kAtomicRead && Releases(event.order)) {
      Send(event.thread);
      atomic_messages_[word] = ++messages_;
    }
  }
}

void TreeFilter::FollowBarrier(const Event& event) {
  auto& messages = barrier_messages_[event.address];
  std::uint64_t round = 0;
  if (event.kind == EventKind::kBarrierEnter) {
    round = rounds_.Enter(event.address, event.thread);
    Send(event.thread);
    if (!messages.contains(round)) messages[round] = ++messages_;
    return;
  }
  if (!rounds_.Leave(event.address, event.thread, &round)) return;
  Receive(event.thread, messages[round]);
  if (!rounds_.IsInUse(event.address, round)) messages.erase(round);
}

void TreeFilter::Forget(std::uint64_t address, std::uint64_t size) {
  if (size == 0) return;
  const std::uint64_t first = address / kPageSize;
  const std::uint64_t last =
      size - 1 > ~address ? ~std::uint64_t{0} : (address + size - 1) / kPageSize;
  std::erase_if(pages_,
                [&](const auto& page) { return page.first >= first && page.first <= last; });
}

}  // namespace trapline
