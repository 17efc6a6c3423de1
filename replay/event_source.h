// The events of a log as replay and export go through them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "replay/late_repeats.h"
#include "replay/log_index.h"
#include "replay/log_reader.h"
#include "replay/status.h"

namespace trapline {

// One pass over the events of which nothing is missing, up to sequence number `last`. Not
// thread-safe; `index` must outlive it.
class EventSource {
 public:
  // `straight`: with late repeats put in their places, for whoever does not take them as they are.
  // That takes a pass over the log beforehand; without late repeats it makes no difference.
  EventSource(const LogIndex& index, Sequence last, bool straight) : log_(index, 0, last) {
    if (straight && index.metadata().HasLateRepeats()) {
      CollectLateRepeats(index, last);
      straight_.emplace(log_, late_);
    }
  }
  EventSource(const EventSource&) = delete;
  EventSource& operator=(const EventSource&) = delete;

  // The next events, at most `capacity`, in order. Returns how many; 0 at the end and after a
  // failure, which status() tells.
  std::size_t Read(Event* events, std::size_t capacity) {
    return straight_ ? straight_->Read(events, capacity) : log_.Read(events, capacity);
  }

  const Status& status() const { return straight_ ? straight_->status() : log_.status(); }
  std::uint64_t position() const { return straight_ ? straight_->position() : log_.position(); }
  std::uint64_t log_position() const { return log_.position(); }  // events of the log read so far
  const StackTable& stacks() const { return log_.stacks(); }      // defined so far

 private:
  void CollectLateRepeats(const LogIndex& index, Sequence last);

  LogReader log_;
  LateRepeats late_;
  std::optional<StraightReader<>> straight_;
};

}  // namespace trapline
