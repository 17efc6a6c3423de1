#include "replay/log_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>

#include "replay/checksum.h"
#include "replay/json_text.h"

namespace trapline {
namespace {

constexpr std::size_t kMaxCheckpoints = 1U << 16;

// Reads up to `size` bytes; returns how many there were, or -1 with errno.
ssize_t ReadAt(int descriptor, void* data, std::size_t size, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = pread(descriptor, static_cast<char*>(data) + done, size - done,
                              static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

std::uint32_t MaxPayload(BlockType type) {
  switch (type) {
    case BlockType::kEvents:
      return kMaxChunkBytes;
    case BlockType::kMetadata:
    case BlockType::kEnd:
      return kMaxMetadataBytes;
    case BlockType::kCheckpoint:
      return 0;
  }
  return 0;
}

bool KnownType(BlockType type) { return type >= BlockType::kMetadata && type <= BlockType::kEnd; }

std::string AsText(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

std::string EndToText(const LogEnd& end) {
  nlohmann::json object = {{"orderly", end.orderly},
                           {"events", end.events},
                           {"lost_events", end.lost_events},
                           {"last_sequence", end.last_sequence}};
  if (!end.reason.empty()) object["reason"] = end.reason;
  return JsonText(object);
}

BlockScratch::~BlockScratch() { ZSTD_freeDCtx(decompressor); }

LogIndex::~LogIndex() {
  if (descriptor_ >= 0) close(descriptor_);
}

Status LogIndex::Open(const std::string& path) {
  path_ = path;
  descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) {
    return Status::Error(fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  }
  struct stat information {};
  if (fstat(descriptor_, &information) != 0 || !S_ISREG(information.st_mode)) {
    return Status::Error(fmt::format("cannot read {}: a trap log must be a regular file", path));
  }
  file_bytes_ = static_cast<std::uint64_t>(information.st_size);
  if (Status status = ReadHeader(); !status.ok()) return status;
  Scan();
  return {};
}

Status LogIndex::ReadHeader() {
  FileHeader header{};
  const ssize_t got = ReadAt(descriptor_, &header, sizeof(header), 0);
  if (got < 0) {
    return Status::Error(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
  }
  if (got < static_cast<ssize_t>(sizeof(header)) ||
      std::memcmp(header.magic, kFileMagic, sizeof(kFileMagic)) != 0) {
    return Status::Error(fmt::format(
        "{} is no trap log: it does not begin as one; give a file that `trapline run --log` wrote",
        path_));
  }
  if (header.version < kOldestLogVersion || header.version > kLogVersion) {
    return Status::Error(fmt::format(
        "{} has format version {}, this program reads versions {} to {}; use the trapline that "
        "wrote it",
        path_, header.version, kOldestLogVersion, kLogVersion));
  }
  if (header.header_bytes != sizeof(header) || header.reserved != 0 ||
      header.checksum != Crc32c(&header, offsetof(FileHeader, checksum))) {
    return Status::Error(
        fmt::format("{} is damaged: the checksum of its first bytes is wrong; nothing in it can be "
                    "trusted",
                    path_));
  }
  version_ = header.version;
  recording_ = {header.recording_low, header.recording_high};
  valid_bytes_ = sizeof(header);
  return {};
}

void LogIndex::Scan() {
  BlockScratch scratch;
  while (!finished_ && valid_bytes_ < file_bytes_) {
    BlockHeader header{};
    bool cut_short = false;
    std::string wrong = ReadStored(valid_bytes_, &header, &scratch.stored, &cut_short);
    if (wrong.empty()) wrong = Take(valid_bytes_, header, &scratch);
    if (!wrong.empty()) {
      damaged_ = !cut_short;
      missing_ = fmt::format("{} of {} bytes cannot be read: at byte {}, {}",
                             file_bytes_ - valid_bytes_, file_bytes_, valid_bytes_, wrong);
      break;
    }
    valid_bytes_ += sizeof(header) + header.stored_bytes;
    ++blocks_;
  }
  if (finished_ && valid_bytes_ < file_bytes_) {
    damaged_ = true;
    missing_ = fmt::format("{} bytes stand behind the end of the log, at byte {}",
                           file_bytes_ - valid_bytes_, valid_bytes_);
  }
  if (finished_ && end_.lost_events == 0 && end_.orderly) {
    complete_up_to_ = kLastSequence;
  } else {
    if (!missing_.empty()) missing_ += "; ";
    missing_ += finished_
                    ? (end_.lost_events != 0
                           ? fmt::format("{} events were dropped while recording", end_.lost_events)
                           : "the recording was broken off (" + end_.reason + ")")
                    : "the recording did not come to its end";
    missing_ +=
        fmt::format("; complete up to sequence {} of {} seen", complete_up_to_, last_sequence_);
  }
}

std::string LogIndex::ReadStored(std::uint64_t offset, BlockHeader* header,
                                 std::vector<std::uint8_t>* stored, bool* cut_short) const {
  const ssize_t got = ReadAt(descriptor_, header, sizeof(*header), offset);
  if (got < 0) return fmt::format("reading fails: {}", std::strerror(errno));
  if (got < static_cast<ssize_t>(sizeof(*header))) {
    *cut_short = true;
    return "the file ends inside a block";
  }
  if (header->magic != kBlockMagic ||
      header->header_checksum != Crc32c(header, offsetof(BlockHeader, header_checksum))) {
    return "the checksum of a block's header is wrong";
  }
  const bool compressed = (header->flags & kBlockCompressed) != 0;
  if (!KnownType(header->type) || header->raw_bytes > MaxPayload(header->type) ||
      (compressed ? header->stored_bytes >= header->raw_bytes
                  : header->stored_bytes != header->raw_bytes)) {
    return "a block's header makes no sense";
  }
  stored->resize(header->stored_bytes);
  const ssize_t payload =
      ReadAt(descriptor_, stored->data(), stored->size(), offset + sizeof(*header));
  if (payload < 0) return fmt::format("reading fails: {}", std::strerror(errno));
  if (payload < static_cast<ssize_t>(stored->size())) {
    *cut_short = true;
    return "the file ends inside a block";
  }
  if (Crc32c(stored->data(), stored->size()) != header->payload_checksum) {
    return "the checksum of a block is wrong";
  }
  return {};
}

std::string LogIndex::Decompress(const BlockHeader& header, BlockScratch* scratch,
                                 std::vector<std::uint8_t>* payload, std::size_t padding) const {
  const std::vector<std::uint8_t>& stored = scratch->stored;
  payload->resize(header.raw_bytes + padding);
  if ((header.flags & kBlockCompressed) == 0) {
    std::copy(stored.begin(), stored.end(), payload->begin());
    return {};
  }
  if (scratch->decompressor == nullptr) scratch->decompressor = ZSTD_createDCtx();
  const std::size_t size = ZSTD_decompressDCtx(scratch->decompressor, payload->data(),
                                               header.raw_bytes, stored.data(), stored.size());
  if (ZSTD_isError(size) != 0 || size != header.raw_bytes) return "a block cannot be decompressed";
  return {};
}

std::string LogIndex::Take(std::uint64_t offset, const BlockHeader& header, BlockScratch* scratch) {
  duration_ns_ = std::max(duration_ns_, header.time_ns);
  if (header.type == BlockType::kEvents) return TakeEvents(offset, header);
  if (header.type == BlockType::kCheckpoint) {
    if (header.last_sequence < complete_up_to_ || header.last_sequence > kLastSequence) {
      return "a checkpoint goes backwards";
    }
    complete_up_to_ = header.last_sequence;
    Keep({header.last_sequence, header.time_ns});
    return {};
  }
  std::vector<std::uint8_t> text;
  if (std::string wrong = Decompress(header, scratch, &text, 0); !wrong.empty()) return wrong;
  if (header.type == BlockType::kEnd) return TakeEnd(AsText(text));
  ++metadata_blocks_;
  return metadata_.Add(AsText(text)).message();
}

std::string LogIndex::TakeEvents(std::uint64_t offset, const BlockHeader& header) {
  ThreadEnd& end = thread_ends_[header.thread];
  std::vector<BlockRef>& blocks = threads_[header.thread];
  const bool fresh = header.offset == 0;
  const bool follows = fresh ? blocks.empty() || header.chunk == end.chunk + 1
                             : !blocks.empty() && header.chunk == end.chunk &&
                                   header.offset == end.offset &&
                                   header.base_sequence == end.sequence;
  if (!follows) {
    return fmt::format("a block of thread {} (chunk {}, offset {}) does not follow the one before",
                       header.thread, header.chunk, header.offset);
  }
  if (header.base_sequence < end.sequence || header.first_sequence < header.base_sequence ||
      (header.events == 0 && header.last_sequence != header.base_sequence) ||
      header.last_sequence < header.first_sequence || header.last_sequence > kLastSequence) {
    return fmt::format("a block of thread {} has no order", header.thread);
  }
  end = {header.chunk, header.offset + header.raw_bytes, header.last_sequence};
  blocks.push_back({offset, header.first_sequence, header.last_sequence, header.events, fresh});
  events_ += header.events;
  raw_bytes_ += header.raw_bytes;
  last_sequence_ = std::max(last_sequence_, header.last_sequence);
  return {};
}

std::string LogIndex::TakeEnd(const std::string& text) {
  try {
    const nlohmann::json object = nlohmann::json::parse(text);
    object.at("orderly").get_to(end_.orderly);
    object.at("events").get_to(end_.events);
    object.at("lost_events").get_to(end_.lost_events);
    object.at("last_sequence").get_to(end_.last_sequence);
    end_.reason = object.value("reason", "");
  } catch (const nlohmann::json::exception& error) {
    return fmt::format("the log's last block cannot be understood ({})", error.what());
  }
  if (end_.events != events_) {
    return fmt::format("the log should hold {} events, but has {}", end_.events, events_);
  }
  finished_ = true;
  return {};
}

void LogIndex::Keep(const LogCheckpoint& checkpoint) {
  if (checkpoints_seen_++ % checkpoint_stride_ != 0) return;
  checkpoints_.push_back(checkpoint);
  if (checkpoints_.size() < kMaxCheckpoints) return;
  for (std::size_t i = 0; i < checkpoints_.size() / 2; ++i) checkpoints_[i] = checkpoints_[2 * i];
  checkpoints_.resize(checkpoints_.size() / 2);
  checkpoint_stride_ *= 2;
}

Status LogIndex::ReadBlock(std::uint64_t offset, BlockHeader* header, BlockScratch* scratch,
                           std::vector<std::uint8_t>* payload, std::size_t padding) const {
  bool cut_short = false;
  std::string wrong = ReadStored(offset, header, &scratch->stored, &cut_short);
  if (wrong.empty()) wrong = Decompress(*header, scratch, payload, padding);
  if (wrong.empty()) return {};
  return Status::Error(fmt::format("{} is damaged at byte {}: {}", path_, offset, wrong));
}

}  // namespace trapline
