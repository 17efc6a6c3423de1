// Writes a trap log from events that are already in their total order: import, cut, merge, traces
// of tests. (Recordings of running programs go through log_producer.h and log_drain.h.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "detector/event.h"
#include "replay/event_encoder.h"
#include "replay/log_file.h"
#include "replay/log_index.h"
#include "replay/log_metadata.h"

namespace trapline {

struct LogWriterOptions {
  std::uint32_t chunk_bytes = 64 << 10;  // 1 KiB .. kMaxChunkBytes
  // Events between two checkpoints, at which everything is handed to the file.
  std::uint64_t checkpoint_events = 1 << 22;
};

// Not thread-safe. Memory: some 100 KiB for each thread that has not ended (kThreadEnd).
class LogWriter {
 public:
  LogWriter();
  ~LogWriter();

  Status Create(const std::string& path, const RecordingId& recording, const LogMetadata& metadata,
                const LogWriterOptions& options = {});

  // Appends with the next sequence number, or with a given one, which must not be below the one
  // before. Errors of the file are kept for Finish and status().
  void Append(const Event& event) { AppendAt(event, sequence_ + 1); }
  void AppendAt(const Event& event, Sequence sequence);
  void AppendStack(ThreadId thread, std::uint32_t id, const std::vector<std::uint64_t>& frames);

  // Hands everything to the file, and notes that it is what was there at `time_ns`.
  void Checkpoint(std::uint64_t time_ns = 0);

  // Writes what is left and the totals. `end.events` and `end.last_sequence` are filled here.
  Status Finish(LogEnd end);
  Status Finish();

  const Status& status() const { return status_; }
  std::uint64_t events() const { return events_; }
  std::uint64_t raw_bytes() const { return file_.raw_bytes(); }

 private:
  struct Stream;

  Stream& StreamOf(ThreadId thread);
  void MakeRoom(Stream& stream, std::uint32_t bytes);
  void Flush(Stream& stream);

  LogFile file_;
  LogWriterOptions options_;
  Status status_;
  std::unordered_map<ThreadId, std::unique_ptr<Stream>> streams_;
  std::unordered_map<ThreadId, std::uint32_t> ended_;  // chunks that ended threads have written
  Stream* latest_ = nullptr;
  Sequence sequence_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace trapline
