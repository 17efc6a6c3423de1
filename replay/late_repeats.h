// A log of what FastTrack was told while the program ran (`--log-filter=fasttrack`) has repeated
// accesses late, or not at all: EventKind::kEarlierRead. For detectors that are not told of them
// so, they are put where they belong: into the epoch of their thread in which they were made.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "detector/event.h"
#include "replay/log_reader.h"
#include "replay/status.h"

namespace trapline {

// Collects the late repeats of a log in one pass over it, and gives them back in the order of their
// places. Memory: `in_memory` of them, and of each thread some MiB; the rest is in a temporary
// file. Not thread-safe.
class LateRepeats {
 public:
  static constexpr std::size_t kInMemory = std::size_t{1} << 17;
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

  explicit LateRepeats(std::size_t in_memory = kInMemory) : in_memory_(in_memory) {}

  // The next events of the log.
  void Note(std::span<const Event> events);
  // There are no more. An error: the temporary file could not be written.
  Status Finish();

  // After Finish: before which event of the log the next one belongs; kNowhere: there is none.
  std::uint64_t next_place() const {
    return runs_.empty() ? kNowhere : runs_.front().first().place;
  }
  // That one, as an access like any other.
  Event Take();
  // An error: the temporary file could not be read, and what was to come is missing.
  const Status& status() const { return status_; }

 private:
  struct Placed {
    std::uint64_t place;
    Event event;
  };
  // Some of them in order; those behind `loaded` are in the file.
  struct Run {
    std::vector<Placed> loaded;
    std::size_t next = 0;
    std::uint64_t number = 0;
    std::uint64_t offset = 0, left = 0;  // in the file

    const Placed& first() const { return loaded[next]; }
    // For a heap whose first one is the earliest.
    static bool IsLater(const Run& a, const Run& b) {
      return a.first().place != b.first().place ? a.first().place > b.first().place
                                                : a.number > b.number;
    }
  };
  // What a thread has done since then may be told as of `moment`, until it gives something away.
  struct Moment {
    std::uint64_t moment;
    std::uint64_t end;  // position of the event by which it does; kNowhere: not yet
  };
  // As many as online detection looks back at least (MomentHistory).
  static constexpr std::size_t kMoments = std::size_t{1} << 18;
  static constexpr std::size_t kLoadedAtOnce = 1024;

  void Begin(std::deque<Moment>& moments, std::uint64_t moment);
  void Place(const Event& late);
  void WriteRun();
  void Fail(const char* what);
  // More of the run from the file; false: it is at its end.
  bool Load(Run& run);

  std::size_t in_memory_;
  std::unordered_map<ThreadId, std::deque<Moment>> moments_;
  std::uint64_t position_ = 0;
  std::vector<Placed> placed_;
  std::vector<Run> runs_;  // after Finish a heap
  struct Close {
    void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::uint64_t written_ = 0;  // bytes
  Status status_;
};

// The events of a log with its late repeats in their places, as a stream. `Log`: LogReader, or what
// has Read and status as it has.
template <class Log = LogReader>
class StraightReader {
 public:
  // Both must outlive this object. `late`: those of the same events, finished.
  StraightReader(Log& log, LateRepeats& late) : log_(log), late_(late), ahead_(kAhead) {}

  // The next events, at most `capacity`. Returns how many; 0 at the end and after a failure, which
  // status() tells.
  std::size_t Read(Event* events, std::size_t capacity) {
    std::size_t count = 0;
    while (count < capacity) {
      if (next_ == known_) {
        read_ += known_;
        next_ = 0;
        known_ = log_.Read(ahead_.data(), ahead_.size());
        if (known_ == 0) break;
      }
      if (late_.next_place() <= read_ + next_) {
        events[count++] = late_.Take();
        continue;
      }
      Event event = ahead_[next_++];
      if (event.kind == EventKind::kMoment || IsEarlierAccess(event.kind)) continue;
      if (IsReleaseOfLock(event.kind)) event.aux = 0;
      events[count++] = event;
    }
    position_ += count;
    return count;
  }

  const Status& status() const { return log_.status().ok() ? late_.status() : log_.status(); }
  std::uint64_t position() const { return position_; }  // events delivered so far

 private:
  static constexpr std::size_t kAhead = 2048;

  Log& log_;
  LateRepeats& late_;
  std::vector<Event> ahead_;
  std::size_t next_ = 0, known_ = 0;  // of `ahead_`
  std::uint64_t read_ = 0;            // position of its first one
  std::uint64_t position_ = 0;
};

}  // namespace trapline
