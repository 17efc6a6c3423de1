#include "replay/late_repeats.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

namespace trapline {
namespace {

// Whether the thread's clock is another one behind the event, so that others can tell apart what it
// has done before.
bool MayEndEpoch(EventKind kind) {
  switch (kind) {
    case EventKind::kAtomicWrite:
    case EventKind::kAtomicRmw:
    case EventKind::kRelease:
    case EventKind::kReleaseShared:
    case EventKind::kHappensBefore:
    case EventKind::kFork:
    case EventKind::kBarrierEnter:
    case EventKind::kThreadEnd:
      return true;
    default:
      return false;
  }
}

}  // namespace

void LateRepeats::Note(std::span<const Event> events) {
  for (const Event& event : events) {
    if (event.kind == EventKind::kMoment) {
      Begin(moments_[event.thread], event.aux);
    } else if (IsEarlierAccess(event.kind)) {
      Place(event);
    } else if (MayEndEpoch(event.kind)) {
      std::deque<Moment>& moments = moments_[event.thread];
      if (!moments.empty()) moments.back().end = std::min(moments.back().end, position_);
      if (IsReleaseOfLock(event.kind) && event.aux != 0) Begin(moments, event.aux);
    }
    ++position_;
  }
}

void LateRepeats::Begin(std::deque<Moment>& moments, std::uint64_t moment) {
  if (!moments.empty()) {
    if (moments.back().end == kNowhere) return;  // nothing was given away in between
    // A late event's may be told after one of the monitor's own.
    moment = std::max(moment, moments.back().moment);
  }
  moments.push_back({moment, kNowhere});
  if (moments.size() > kMoments) moments.pop_front();
}

void LateRepeats::Place(const Event& late) {
  const std::deque<Moment>& moments = moments_[late.thread];
  const auto after = std::upper_bound(
      moments.begin(), moments.end(), late.aux,
      [](std::uint64_t wanted, const Moment& moment) { return wanted < moment.moment; });
  if (after == moments.begin()) return;  // nobody knows when; nor does FastTrack use it
  Event event = late;
  event.kind = late.kind == EventKind::kEarlierWrite ? EventKind::kWrite : EventKind::kRead;
  event.aux = 0;
  // It is told before whatever ends its bytes' history, and before whoever may race with it.
  placed_.push_back({std::min(std::prev(after)->end, position_), event});
  if (placed_.size() == in_memory_) WriteRun();
}

void LateRepeats::WriteRun() {
  std::ranges::stable_sort(placed_, {}, &Placed::place);
  Run run;
  run.number = runs_.size();
  run.offset = written_;
  run.left = placed_.size();
  if (file_ == nullptr) file_.reset(std::tmpfile());
  if (file_ == nullptr ||
      std::fwrite(placed_.data(), sizeof(Placed), placed_.size(), file_.get()) != placed_.size()) {
    Fail("write");
  }
  written_ += placed_.size() * sizeof(Placed);
  placed_.clear();
  runs_.push_back(std::move(run));
}

void LateRepeats::Fail(const char* what) {
  if (!status_.ok()) return;
  status_ = Status::Error(
      fmt::format("cannot {} a temporary file in {}, which the log's late repeats need: {}", what,
                  P_tmpdir, std::strerror(errno)));
}

Status LateRepeats::Finish() {
  moments_.clear();
  if (file_ != nullptr && std::fflush(file_.get()) != 0) Fail("write");
  if (!status_.ok()) {
    runs_.clear();
    return status_;
  }
  std::ranges::stable_sort(placed_, {}, &Placed::place);
  Run last;
  last.number = runs_.size();
  last.loaded = std::move(placed_);
  runs_.push_back(std::move(last));
  std::erase_if(runs_, [this](Run& run) { return run.loaded.empty() && !Load(run); });
  std::make_heap(runs_.begin(), runs_.end(), Run::IsLater);
  return status_;
}

bool LateRepeats::Load(Run& run) {
  run.loaded.resize(std::min<std::uint64_t>(run.left, kLoadedAtOnce));
  run.next = 0;
  const std::size_t bytes = run.loaded.size() * sizeof(Placed);
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t got =
        pread(fileno(file_.get()), reinterpret_cast<char*>(run.loaded.data()) + done, bytes - done,
              static_cast<off_t>(run.offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      Fail("read");
      run.left = 0;
      return false;
    }
    done += static_cast<std::size_t>(got);
  }
  run.left -= run.loaded.size();
  run.offset += bytes;
  return bytes != 0;
}

Event LateRepeats::Take() {
  std::pop_heap(runs_.begin(), runs_.end(), Run::IsLater);
  Run& run = runs_.back();
  const Event event = run.first().event;
  if (++run.next == run.loaded.size() && !Load(run)) {
    runs_.pop_back();
  } else {
    std::push_heap(runs_.begin(), runs_.end(), Run::IsLater);
  }
  return event;
}

}  // namespace trapline
