// The consumer of a recording: takes chunks out of the shared memory segment, compresses them and
// writes them to the log. Runs in a thread of the producer or in a process of its own, which may
// die and be replaced at any time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "replay/event_decoder.h"
#include "replay/log_file.h"
#include "replay/log_index.h"
#include "replay/log_segment.h"

namespace trapline {

// Not thread-safe, and one drain to a segment at a time.
class LogDrain {
 public:
  explicit LogDrain(LogSegment& segment);
  LogDrain(const LogDrain&) = delete;
  LogDrain& operator=(const LogDrain&) = delete;
  ~LogDrain();

  // Starts the log `path`; or, if it is the unfinished log of this very recording, goes on with it:
  // what a drain before had written is not written again. Any other file is overwritten.
  Status Open(const std::string& path);

  // The producer holds the other end of the socket `descriptor`. Its end without a word means that
  // the producer was killed, or has run another program; one byte says that it is the latter. Run
  // then ends the recording. Not owned.
  void Watch(int descriptor) { control_ = descriptor; }

  // One round: writes every full chunk, and, with `partial`, what is committed in the others and a
  // checkpoint. Returns the number of bytes taken. After an error of the file (see status())
  // chunks are emptied and counted as lost, so that the workload goes on.
  std::uint64_t Round(bool partial);

  // Rounds until the producer has closed the recording or is dead, or `stop` is set; then Finish().
  // Producers are looked for every `interval`, partial chunks are taken every tenth.
  Status Run(const std::atomic<bool>& stop,
             std::chrono::microseconds interval = std::chrono::milliseconds(2));

  // The last round, the totals, the end. `reason`: why the recording ends out of order; else empty.
  Status Finish(const std::string& reason);

  const Status& status() const { return status_; }
  std::uint64_t raw_bytes() const { return file_.raw_bytes(); }
  std::uint64_t file_bytes() const { return file_.file_bytes(); }

 private:
  struct ThreadState {        // what of a thread's stream is in the file
    std::uint32_t chunk = 0;  // number of the chunk to be written, or written in part
    Sequence sequence = 0;    // of the last event
    bool any = false;         // something of it has been taken
    // Stands behind what is in the file of the chunk, so that pieces are decoded once.
    std::unique_ptr<EventDecoder> decoder;
  };

  Status Resume(const std::string& path, const LogIndex& index);
  // For a file that starts anew: takes the chunks as they are, and says what is gone already.
  void StartAnew();
  bool ProducerDead() const;
  // It has closed its descriptors because it dies, and not for an execve.
  bool ProducerExiting() const;
  // The producer has closed its end of the control socket, or said that it runs another program.
  bool ProducerGone() const;
  void WriteMetadata();
  // Writes bytes [drained, committed) of the chunk; false if there was nothing.
  bool Take(std::uint32_t index, std::uint32_t committed);
  void Release(std::uint32_t index);
  // If no number up to *upper is uncommitted: true, with *upper the last one drawn.
  bool Settled(Sequence* upper) const;
  void Fail(const Status& status);
  std::uint64_t Now() const;

  LogSegment& segment_;
  LogFile file_;
  Status status_;
  std::map<ThreadId, ThreadState> threads_;
  std::uint32_t metadata_position_ = 0;
  Sequence checkpoint_ = 0;
  int producer_ = -1;       // pidfd; -1 = the producer is dead
  int control_ = -1;        // see Watch
  bool quiet_ = false;      // no producer runs any more
  bool successor_ = false;  // another drain was there before, and its file is not ours
  std::uint64_t events_ = 0;
  Sequence last_sequence_ = 0;
  std::vector<std::uint8_t> copy_;
  std::vector<Event> scratch_;
  std::vector<std::uint32_t> order_;
};

}  // namespace trapline
