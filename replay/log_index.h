// What is in a trap log file: its longest prefix of whole, correct blocks, and what is missing
// after it. Nothing in the file is trusted: every checksum is verified before anything is used, and
// what stands behind the first bad one is never looked at.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "replay/log_file.h"
#include "replay/log_format.h"
#include "replay/log_metadata.h"
#include "replay/status.h"

struct ZSTD_DCtx_s;

namespace trapline {

// Where a block of events is; 32 bytes of memory for each block of the log.
struct BlockRef {
  std::uint64_t offset;  // of its header in the file
  Sequence first_sequence;
  Sequence last_sequence;
  std::uint32_t events;
  bool fresh;  // starts a chunk: can be decoded without the one before
};

struct LogCheckpoint {
  Sequence sequence;  // every ordered event up to it is in the log
  std::uint64_t time_ns;
};

// The totals that a finished log ends with.
struct LogEnd {
  bool orderly = false;  // the recording was closed, not broken off
  std::uint64_t events = 0;
  std::uint64_t lost_events = 0;  // dropped for want of room
  Sequence last_sequence = 0;
  std::string reason;  // why it is not orderly; empty otherwise
};

// `end` as the text of the log's last block.
std::string EndToText(const LogEnd& end);

// What reading blocks needs and the next block can use again.
struct BlockScratch {
  BlockScratch() = default;
  ~BlockScratch();
  BlockScratch(const BlockScratch&) = delete;
  BlockScratch& operator=(const BlockScratch&) = delete;

  std::vector<std::uint8_t> stored;
  ZSTD_DCtx_s* decompressor = nullptr;  // made when the first compressed block comes
};

// An opened log file. Immutable after Open; ReadBlock may be called from many threads.
class LogIndex {
 public:
  LogIndex() = default;
  LogIndex(const LogIndex&) = delete;
  LogIndex& operator=(const LogIndex&) = delete;
  ~LogIndex();

  // Where a thread's stream stands at the end of the log.
  struct ThreadEnd {
    std::uint32_t chunk = 0;   // number of its last chunk
    std::uint32_t offset = 0;  // bytes of it that are there
    Sequence sequence = 0;
  };

  // Opens and verifies `path`. Fails if it is no trap log that this version can read; a log that is
  // cut short or damaged further on opens, with missing() saying so.
  Status Open(const std::string& path);

  const std::string& path() const { return path_; }
  std::uint32_t version() const { return version_; }  // of the format
  const RecordingId& recording() const { return recording_; }
  const LogMetadata& metadata() const { return metadata_; }
  const std::map<ThreadId, std::vector<BlockRef>>& threads() const { return threads_; }
  // `thread` must be one of threads().
  const ThreadEnd& thread_end(ThreadId thread) const { return thread_ends_.at(thread); }
  // One in every so many of the log's checkpoints (at most 64 Ki of them), in order.
  const std::vector<LogCheckpoint>& checkpoints() const { return checkpoints_; }
  bool finished() const { return finished_; }
  const LogEnd& end() const { return end_; }

  // The last sequence number up to which nothing is missing: replay beyond it would lack events
  // that order others. kLastSequence if the log is complete.
  Sequence complete_up_to() const { return complete_up_to_; }
  Sequence last_sequence() const { return last_sequence_; }

  // One line for the user on what cannot be read; empty if nothing is missing. `damaged` says that
  // bytes are there but wrong, not just cut off.
  const std::string& missing() const { return missing_; }
  bool damaged() const { return damaged_; }

  std::uint64_t events() const { return events_; }
  std::uint64_t blocks() const { return blocks_; }
  std::uint32_t metadata_blocks() const { return metadata_blocks_; }
  std::uint64_t raw_bytes() const { return raw_bytes_; }      // of event blocks, before compression
  std::uint64_t valid_bytes() const { return valid_bytes_; }  // of the file
  std::uint64_t file_bytes() const { return file_bytes_; }
  std::uint64_t duration_ns() const { return duration_ns_; }

  // Reads the block at `offset` (of a BlockRef), checks it again, decompresses it. `payload` gets
  // `padding` more bytes than there are, for decoders that read ahead.
  Status ReadBlock(std::uint64_t offset, BlockHeader* header, BlockScratch* scratch,
                   std::vector<std::uint8_t>* payload, std::size_t padding) const;

 private:
  Status ReadHeader();
  void Scan();
  // Reads and verifies header and stored payload at `offset`. Returns what is wrong, empty if all
  // is well; *cut_short if the file ends inside the block.
  std::string ReadStored(std::uint64_t offset, BlockHeader* header,
                         std::vector<std::uint8_t>* stored, bool* cut_short) const;
  std::string Decompress(const BlockHeader& header, BlockScratch* scratch,
                         std::vector<std::uint8_t>* payload, std::size_t padding) const;
  // Takes in a verified block; returns what is wrong with it.
  std::string Take(std::uint64_t offset, const BlockHeader& header, BlockScratch* scratch);
  std::string TakeEvents(std::uint64_t offset, const BlockHeader& header);
  std::string TakeEnd(const std::string& text);
  void Keep(const LogCheckpoint& checkpoint);

  int descriptor_ = -1;
  std::string path_;
  std::uint32_t version_ = 0;
  RecordingId recording_;
  LogMetadata metadata_;
  std::map<ThreadId, std::vector<BlockRef>> threads_;
  std::map<ThreadId, ThreadEnd> thread_ends_;
  std::vector<LogCheckpoint> checkpoints_;
  std::uint64_t checkpoints_seen_ = 0;
  std::uint64_t checkpoint_stride_ = 1;
  LogEnd end_;
  bool finished_ = false;
  bool damaged_ = false;
  std::string missing_;
  Sequence complete_up_to_ = 0;
  Sequence last_sequence_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t blocks_ = 0;
  std::uint32_t metadata_blocks_ = 0;
  std::uint64_t raw_bytes_ = 0;
  std::uint64_t valid_bytes_ = 0;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t duration_ns_ = 0;
};

}  // namespace trapline
