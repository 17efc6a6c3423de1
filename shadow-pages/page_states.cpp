#include "shadow-pages/page_states.h"

#include <algorithm>
#include <utility>

namespace trapline {
namespace {

// The first touch of a place gives this much; each neighbour that follows twice as much, up to a
// large page. A fault that reaches the monitor costs ~35 us on kvm_pvm, whatever the run's length.
constexpr std::uint64_t kFirstRun = 16 * kPageSize;
constexpr std::uint64_t kLongestRun = kLargePageSize;

}  // namespace

void PageStates::Split(std::uint64_t at) {
  auto it = runs_.upper_bound(at);
  if (it == runs_.begin()) return;
  --it;
  if (it->first == at || it->second.end <= at) return;
  const Body upper = it->second;
  it->second.end = at;
  runs_.emplace_hint(std::next(it), at, upper);
}

void PageStates::MergeAround(std::uint64_t start) {
  auto it = runs_.find(start);
  if (it == runs_.end()) return;
  const auto same = [](const Body& a, const Body& b) {
    return a.state == b.state && a.owner == b.owner && a.renewals == b.renewals &&
           a.inherited == b.inherited;
  };
  if (it != runs_.begin()) {
    const auto before = std::prev(it);
    if (before->second.end == it->first && same(before->second, it->second)) {
      before->second.end = it->second.end;
      runs_.erase(it);
      it = before;
    }
  }
  const auto after = std::next(it);
  if (after != runs_.end() && it->second.end == after->first && same(it->second, after->second)) {
    it->second.end = after->second.end;
    runs_.erase(after);
  }
}

void PageStates::Set(const PageRun& run) {
  if (run.start >= run.end) return;
  Split(run.start);
  Split(run.end);
  runs_.erase(runs_.lower_bound(run.start), runs_.lower_bound(run.end));
  if (run.state == PageState::kUntouched) return;
  runs_[run.start] = {run.end, run.state, run.owner, 0};
  MergeAround(run.start);
}

PageRun PageStates::Find(std::uint64_t address, std::uint64_t low, std::uint64_t high) const {
  const auto after = runs_.upper_bound(address);
  PageRun run{low, high, PageState::kUntouched, 0};
  if (after != runs_.end()) run.end = std::min(high, after->first);
  if (after == runs_.begin()) return run;
  const auto& [start, body] = *std::prev(after);
  if (body.end <= address) {
    run.start = std::max(low, body.end);
    return run;
  }
  return {std::max(low, start), std::min(high, body.end), body.state, body.owner};
}

PageRun PageStates::RunFor(std::uint64_t thread, std::uint64_t page, const PageRun& free) const {
  std::uint64_t length = kFirstRun;
  if (page == free.start && page != 0) {
    // The page after an own run: the thread walks upwards.
    const PageRun before = Find(page - kPageSize, 0, page);
    if (before.state == PageState::kPrivate && before.owner == thread)
      length = std::clamp(2 * (before.end - before.start), kFirstRun, kLongestRun);
  }
  // Aligned to its own length, so that runs of different threads do not interleave more than they
  // must.
  const std::uint64_t aligned = AlignDown(length, kFirstRun);
  PageRun run{AlignDown(page, kFirstRun), 0, PageState::kPrivate, thread};
  run.end = run.start + aligned;
  run.start = std::max(run.start, free.start);
  run.end = std::min(run.end, free.end);
  return run;
}

// Makes pages around `page` private, inside the untouched run `free`.
PageRun PageStates::Claim(std::uint64_t thread, std::uint64_t page, const PageRun& free) {
  const PageRun run = RunFor(thread, page, free);
  Set(run);
  tenure_.Begin(run.start, run.end, true);
  return run;
}

PageRun PageStates::Share(std::uint64_t thread, std::uint64_t page, const PageRun& run) {
  const Neighbourhood::Pages pages = shared_by_[thread].Around(page);
  const PageRun shared{std::max(run.start, pages.start), std::min(run.end, pages.end),
                       PageState::kShared, 0};
  Set(shared);
  if (run.state != PageState::kReadOnly) tenure_.OnShared(shared.start, shared.end);
  return shared;
}

PageRun PageStates::Take(std::uint64_t thread, std::uint64_t page, const PageRun& run) {
  const Neighbourhood::Pages pages = shared_by_[thread].Around(page);
  const std::uint64_t start = std::max(run.start, pages.start);
  const std::uint64_t end = std::min(run.end, pages.end);
  PageRun taken{page, page + kPageSize, PageState::kTaken, thread};
  while (taken.start > start && tenure_.IsLong(taken.start - kPageSize)) taken.start -= kPageSize;
  while (taken.end < end && tenure_.IsLong(taken.end)) taken.end += kPageSize;
  Set(taken);
  tenure_.Begin(taken.start, taken.end, false);
  return taken;
}

std::vector<PageRun> PageStates::KeepTaken(std::uint64_t start, std::uint64_t end,
                                           std::uint64_t thread) {
  std::vector<PageRun> kept;
  ForEach(start, end, [&](const PageRun& run) {
    if (run.state == PageState::kTaken && run.owner == thread)
      kept.push_back({run.start, run.end, PageState::kPrivate, thread});
  });
  for (const PageRun& run : kept) Set(run);
  return kept;
}

Touch PageStates::OnTouch(std::uint64_t thread, std::uint64_t address, bool write,
                          std::uint64_t low, std::uint64_t high, const UsedByOwner& used,
                          bool takes) {
  const std::uint64_t page = AlignDown(address, kPageSize);
  const PageRun run = Find(page, low, high);
  switch (run.state) {
    case PageState::kUntracked:
    case PageState::kShared:
      return {run, std::nullopt};
    case PageState::kReadOnly: {
      if (!write) return {run, std::nullopt};
      return {Share(thread, page, run), std::nullopt, true};
    }
    case PageState::kUntouched: {
      if (policy_ != SharingPolicy::kExact) return {Claim(thread, page, run), std::nullopt};
      // All of the gap inside one large page: a state costs nothing, a look-up would.
      PageRun shared{AlignDown(page, kLargePageSize),
                     AlignDown(page, kLargePageSize) + kLargePageSize, PageState::kShared, 0};
      shared.start = std::max(shared.start, run.start);
      shared.end = std::min(shared.end, run.end);
      Set(shared);
      return {shared, std::nullopt};
    }
    case PageState::kOrphaned: {
      PageRun claimed = Claim(thread, page, run);
      return {claimed, PageRun{claimed.start, claimed.end, run.state, run.owner}};
    }
    case PageState::kPrivate:
    case PageState::kTaken:
      break;
  }
  if (run.owner == thread) return {run, std::nullopt};
  const bool is_private = run.state == PageState::kPrivate;
  if (is_private && !used(page, run.owner)) {
    // Given out in a run and not used, or not since its owner made a thread: it changes hands, with
    // those after it that were not used either. In the first case the owner may be about to use
    // them, so it loses few.
    const bool renewed = std::prev(runs_.upper_bound(page))->second.renewals != 0;
    const std::uint64_t limit = renewed ? RunFor(thread, page, {page, run.end}).end
                                        : std::min(run.end, AlignDown(page, kFirstRun) + kFirstRun);
    std::uint64_t end = page + kPageSize;
    while (end < limit && !used(end, run.owner)) end += kPageSize;
    const PageRun moved{page, end, PageState::kPrivate, thread};
    Set(moved);
    tenure_.Begin(page, end, false);
    return {moved, PageRun{page, end, PageState::kPrivate, run.owner}};
  }
  const PageRun now = is_private && takes && tenure_.IsLong(page) ? Take(thread, page, run)
                                                                  : Share(thread, page, run);
  return {now, PageRun{now.start, now.end, run.state, run.owner}};
}

std::vector<PageRun> PageStates::Seal(std::uint64_t thread) {
  shared_by_.erase(thread);
  std::vector<PageRun> sealed;
  for (auto it = runs_.begin(); it != runs_.end();) {
    if (it->second.state == PageState::kPrivate && it->second.owner == thread) {
      sealed.push_back({it->first, it->second.end, PageState::kPrivate, thread});
      it = runs_.erase(it);
      continue;
    }
    if (it->second.state == PageState::kTaken && it->second.owner == thread)
      it->second = {it->second.end, PageState::kShared, 0};
    ++it;
  }
  return sealed;
}

std::vector<PageRun> PageStates::Inherit(std::uint64_t carrier, std::uint64_t thread) {
  std::vector<PageRun> inherited;
  for (const auto& [start, body] : runs_) {
    if (body.state == PageState::kOrphaned && body.owner == carrier)
      inherited.push_back({start, body.end, PageState::kPrivate, thread});
  }
  for (const PageRun& run : inherited) {
    Set(run);
    std::prev(runs_.upper_bound(run.start))->second.inherited = true;
    tenure_.Begin(run.start, run.end, false);
  }
  return inherited;
}

bool PageStates::IsInherited(std::uint64_t address) const {
  const auto after = runs_.upper_bound(address);
  if (after == runs_.begin()) return false;
  const Body& body = std::prev(after)->second;
  return address < body.end && body.inherited;
}

void PageStates::Renew(std::uint64_t thread, const ForgetUse& forget_use) {
  // Most programs' first thread makes some threads before any of them has come for its memory, and
  // may use it in between.
  constexpr unsigned kMostRenewals = 4;
  shared_by_.erase(thread);
  std::vector<PageRun> owned;
  for (const auto& [start, body] : runs_) {
    if (body.owner != thread) continue;
    const bool may_be_handed_on =
        body.state == PageState::kPrivate && body.renewals < kMostRenewals;
    if (may_be_handed_on || body.state == PageState::kTaken)
      owned.push_back({start, body.end, body.state, thread});
  }
  if (owned.empty()) return;
  for (const PageRun& run : owned) {
    if (run.state == PageState::kTaken) {
      Set({run.start, run.end, PageState::kShared, 0});
      continue;
    }
    for (std::uint64_t at = run.start; at < run.end;) {
      const std::uint64_t end = std::min(run.end, AlignDown(at, kFirstRun) + kFirstRun);
      const bool used = forget_use({at, end, PageState::kPrivate, thread});
      Split(at);
      Split(end);
      Body& body = std::prev(runs_.upper_bound(at))->second;
      body.renewals = used ? std::max(body.renewals, 1u) + 1 : 1;
      at = end;
    }
  }
  // Those alike are one again.
  for (auto it = runs_.begin(); it != runs_.end();) {
    const std::uint64_t start = it->first;
    MergeAround(start);
    it = runs_.upper_bound(start);
  }
}

void PageStates::Move(std::uint64_t from, std::uint64_t to, std::uint64_t length) {
  std::vector<PageRun> moved;
  ForEach(from, from + length, [&](const PageRun& run) { moved.push_back(run); });
  Clear(from, from + length);
  Clear(to, to + length);
  for (PageRun run : moved) {
    run.start = run.start - from + to;
    run.end = run.end - from + to;
    Set(run);
  }
}

void PageStates::Track(std::uint64_t start, std::uint64_t end) {
  std::vector<PageRun> untracked;
  ForEach(start, end, [&](const PageRun& run) {
    if (run.state == PageState::kUntracked) untracked.push_back(run);
  });
  for (const PageRun& run : untracked) Clear(run.start, run.end);
}

std::vector<PageRun> PageStates::StayShared() {
  // Those that threads share with the one that makes them: stacks' ends, variables of the C
  // library. Where they share more, faults are not what costs.
  constexpr std::uint64_t kMostPages = 1024;
  constexpr unsigned kResets = 3;
  std::vector<PageRun> stay;
  if (policy_ != SharingPolicy::kAdaptive) return stay;
  std::unordered_map<std::uint64_t, unsigned> before = std::exchange(resets_shared_, {});
  if (Count(PageState::kShared) > kMostPages) return stay;
  for (const auto& [start, body] : runs_) {
    if (body.state != PageState::kShared) continue;
    for (std::uint64_t page = start; page < body.end; page += kPageSize) {
      const unsigned resets = std::min(before[page] + 1, kResets);
      resets_shared_[page] = resets;
      if (resets < kResets) continue;
      if (stay.empty() || stay.back().end != page) {
        stay.push_back({page, page, PageState::kShared, 0});
      }
      stay.back().end = page + kPageSize;
    }
  }
  return stay;
}

std::vector<PageRun> PageStates::Reset(std::optional<std::uint64_t> left) {
  const std::vector<PageRun> stay = StayShared();
  for (const PageRun& run : stay) Clear(run.start, run.end);
  std::vector<PageRun> gone;
  std::erase_if(runs_, [&](const auto& run) {
    const auto& [start, body] = run;
    const bool stays = body.state == PageState::kUntracked ||
                       (body.state == PageState::kPrivate && body.owner == left) ||
                       (body.state == PageState::kOrphaned && left.has_value());
    if (!stays) gone.push_back({start, body.end, body.state, body.owner});
    return !stays;
  });
  for (const PageRun& run : stay) Set(run);
  shared_by_.clear();
  return gone;
}

void PageStates::ForEach(std::uint64_t start, std::uint64_t end,
                         const std::function<void(const PageRun&)>& visit) const {
  for (std::uint64_t at = start; at < end;) {
    const PageRun run = Find(at, start, end);
    visit({at, run.end, run.state, run.owner});
    at = run.end;
  }
}

std::uint64_t PageStates::Count(PageState state) const {
  std::uint64_t pages = 0;
  for (const auto& [start, body] : runs_) {
    if (body.state == state) pages += (body.end - start) / kPageSize;
  }
  return pages;
}

}  // namespace trapline
