// Writing the blocks of a trap log to a file, so that at any moment what is in the file is a valid
// log. Reading is log_index.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "replay/log_format.h"
#include "replay/status.h"

struct ZSTD_CCtx_s;

namespace trapline {

// Identifies one recording; all its pieces carry the same.
struct RecordingId {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  static RecordingId Random();
  friend bool operator==(const RecordingId&, const RecordingId&) = default;
};

// A trap log being written. Not thread-safe. After an error nothing more is written, the file has
// been cut back to its last whole block, and every call returns that error again.
class LogFile {
 public:
  LogFile() = default;
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  ~LogFile();

  // Creates `path`, or empties it. Fails after two seconds if another process is writing a log
  // there.
  Status Create(const std::string& path, const RecordingId& recording);
  // Goes on with the log `path` whose first `valid_bytes` are good; what is behind them is dropped.
  Status Resume(const std::string& path, std::uint64_t valid_bytes);

  // Appends a block. Of `header`, the caller fills type, thread, events, chunk, offset, the
  // sequence numbers, time_ns and kBlockHasValues; the rest is filled here.
  Status Append(BlockHeader header, std::span<const std::uint8_t> payload);
  Status Append(BlockType type, std::string_view text, std::uint64_t time_ns = 0);

  Status Close();
  bool is_open() const { return descriptor_ >= 0; }
  int error_number() const { return error_number_; }  // errno of the failure; 0 = none

  std::uint64_t raw_bytes() const { return raw_bytes_; }  // payload before compression, so far
  std::uint64_t file_bytes() const { return offset_; }

 private:
  // For writing, by nobody else.
  Status Open(const std::string& path, int flags, const char* what);
  Status WriteAll(std::span<const std::uint8_t> bytes);
  Status Fail(const char* what);

  int descriptor_ = -1;
  int error_number_ = 0;
  std::string path_;
  std::uint64_t offset_ = 0;
  std::uint64_t raw_bytes_ = 0;
  Status failure_;
  ZSTD_CCtx_s* compressor_ = nullptr;
  std::vector<std::uint8_t> buffer_;  // one block: header and payload
};

}  // namespace trapline
