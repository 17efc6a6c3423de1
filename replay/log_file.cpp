#include "replay/log_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "replay/checksum.h"

namespace trapline {
namespace {

// Fastest to write and to read among the levels that still halve a typical chunk.
constexpr int kCompressionLevel = 1;

}  // namespace

RecordingId RecordingId::Random() {
  RecordingId id;
  if (getrandom(&id, sizeof(id), 0) != sizeof(id)) {
    id = {static_cast<std::uint64_t>(getpid()), static_cast<std::uint64_t>(time(nullptr))};
  }
  return id;
}

LogFile::~LogFile() {
  if (descriptor_ >= 0) close(descriptor_);
  ZSTD_freeCCtx(compressor_);
}

Status LogFile::Fail(const char* what) {
  error_number_ = errno;
  // Whatever part of a block got into the file goes again: the file ends with a whole block.
  const bool cut = descriptor_ >= 0 && ftruncate(descriptor_, static_cast<off_t>(offset_)) == 0;
  failure_ = Status::Error(fmt::format(
      "cannot {} {}: {}{}", what, path_, std::strerror(error_number_),
      error_number_ == ENOSPC || error_number_ == EFBIG || error_number_ == EDQUOT
          ? fmt::format("; the log is valid up to byte {}{}; make room or choose another place",
                        offset_, cut ? "" : ", the rest will be ignored")
          : ""));
  return failure_;
}

Status LogFile::Create(const std::string& path, const RecordingId& recording) {
  path_ = path;
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) return Fail("create");
  FileHeader header{};
  std::memcpy(header.magic, kFileMagic, sizeof(kFileMagic));
  header.version = kLogVersion;
  header.header_bytes = sizeof(header);
  header.recording_low = recording.low;
  header.recording_high = recording.high;
  header.checksum = Crc32c(&header, offsetof(FileHeader, checksum));
  return WriteAll({reinterpret_cast<const std::uint8_t*>(&header), sizeof(header)});
}

Status LogFile::Resume(const std::string& path, std::uint64_t valid_bytes) {
  path_ = path;
  offset_ = valid_bytes;
  descriptor_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor_ < 0) return Fail("open");
  if (ftruncate(descriptor_, static_cast<off_t>(valid_bytes)) != 0 ||
      lseek(descriptor_, static_cast<off_t>(valid_bytes), SEEK_SET) < 0) {
    return Fail("go on with");
  }
  return {};
}

Status LogFile::WriteAll(std::span<const std::uint8_t> bytes) {
  if (!failure_.ok()) return failure_;
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = pwrite(descriptor_, bytes.data() + done, bytes.size() - done,
                                 static_cast<off_t>(offset_ + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote == 0) errno = ENOSPC;
    if (wrote <= 0) return Fail("write");
    done += static_cast<std::size_t>(wrote);
  }
  offset_ += done;
  return {};
}

Status LogFile::Append(BlockHeader header, std::span<const std::uint8_t> payload) {
  if (!failure_.ok()) return failure_;
  if (compressor_ == nullptr) compressor_ = ZSTD_createCCtx();
  const std::size_t bound = ZSTD_compressBound(payload.size());
  if (buffer_.size() < sizeof(header) + bound) buffer_.resize(sizeof(header) + bound);
  std::uint8_t* stored = buffer_.data() + sizeof(header);
  std::size_t stored_bytes = 0;
  if (!payload.empty()) {
    stored_bytes = ZSTD_compressCCtx(compressor_, stored, bound, payload.data(), payload.size(),
                                     kCompressionLevel);
  }
  header.flags &= static_cast<std::uint8_t>(~kBlockCompressed);
  if (ZSTD_isError(stored_bytes) == 0 && stored_bytes < payload.size()) {
    header.flags |= kBlockCompressed;
  } else {
    stored_bytes = payload.size();
    if (stored_bytes != 0) std::memcpy(stored, payload.data(), stored_bytes);
  }
  header.magic = kBlockMagic;
  header.reserved = 0;
  header.stored_bytes = static_cast<std::uint32_t>(stored_bytes);
  header.raw_bytes = static_cast<std::uint32_t>(payload.size());
  header.payload_checksum = Crc32c(stored, stored_bytes);
  header.header_checksum = Crc32c(&header, offsetof(BlockHeader, header_checksum));
  std::memcpy(buffer_.data(), &header, sizeof(header));
  raw_bytes_ += payload.size();
  return WriteAll({buffer_.data(), sizeof(header) + stored_bytes});
}

Status LogFile::Append(BlockType type, std::string_view text, std::uint64_t time_ns) {
  BlockHeader header{};
  header.type = type;
  header.time_ns = time_ns;
  return Append(header, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

Status LogFile::Close() {
  if (descriptor_ < 0) return failure_;
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (close(descriptor) != 0 && failure_.ok()) return Fail("close");
  return failure_;
}

}  // namespace trapline
