// The events of a trap log in their observed total order, as a stream: the streams of the threads
// are merged by sequence number. Memory follows the threads that are alive at one point of the log,
// not its length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "detector/event.h"
#include "replay/event_decoder.h"
#include "replay/log_index.h"

namespace trapline {

// One pass over a log. Not thread-safe; several readers may share an index.
class LogReader {
 public:
  // Delivers the events with first <= sequence number <= last; what is before `first` is decoded
  // and passed over. By default all of which nothing is missing: see LogIndex::complete_up_to.
  LogReader(const LogIndex& index, Sequence first, Sequence last);
  explicit LogReader(const LogIndex& index) : LogReader(index, 0, index.complete_up_to()) {}
  ~LogReader();

  // The next events, at most `capacity`, in order, and their numbers if `sequences` is not null.
  // Returns how many; 0 at the end and after a failure, which status() tells.
  std::size_t Read(Event* events, Sequence* sequences, std::size_t capacity);
  std::size_t Read(Event* events, std::size_t capacity) { return Read(events, nullptr, capacity); }

  const Status& status() const { return status_; }
  std::uint64_t position() const { return position_; }  // events delivered so far
  const StackTable& stacks() const { return stacks_; }  // defined so far

 private:
  struct Stream;
  struct Next {  // a stream's next event
    Sequence sequence;
    ThreadId thread;
    Stream* stream;

    // Numbers are equal only inside one thread, in logs as Trapline records them; the thread
    // decides otherwise, so that the order is total for any file.
    bool Before(const Next& other) const {
      return sequence != other.sequence ? sequence < other.sequence : thread < other.thread;
    }
  };

  bool Load(Stream& stream);
  // Where the first stream may run to before another one's turn.
  Sequence Limit() const;
  void SiftDown();
  // The first stream's block is used up: on to its next block, or away with it.
  void Advance();
  void SkipTo(Sequence first);
  // Lets the first stream run until another one's turn, `last`, or the end of its block.
  std::size_t Run(Event* events, Sequence* sequences, std::size_t capacity, Sequence last);

  const LogIndex& index_;
  const Sequence last_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<Next> heap_;  // smallest first
  StackTable stacks_;
  std::uint64_t position_ = 0;
  Status status_;
  BlockScratch scratch_;
};

}  // namespace trapline
