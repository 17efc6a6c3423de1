#include "replay/log_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <utility>

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

Status LogFile::Open(const std::string& path, int flags, const char* what) {
  path_ = path;
  descriptor_ = open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0666);
  if (descriptor_ < 0) return Fail(what);
  // What is left of a recording that was killed may be on its way to the file. Where files cannot
  // be locked (some network file systems), nobody is told.
  constexpr unsigned kMostTries = 100;
  constexpr timespec kPause{0, 20'000'000};
  for (unsigned tries = 0; flock(descriptor_, LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK) break;
    if (tries < kMostTries) {
      nanosleep(&kPause, nullptr);
      continue;
    }
    // It is not this one's to cut.
    close(std::exchange(descriptor_, -1));
    error_number_ = EWOULDBLOCK;
    return failure_ = Status::Error(fmt::format(
               "cannot {} {}: another recording is writing it; give each a file of its own", what,
               path_));
  }
  return {};
}

Status LogFile::Create(const std::string& path, const RecordingId& recording) {
  if (Status opened = Open(path, O_CREAT, "create"); !opened.ok()) return opened;
  // Fails for what has no length, such as a device.
  static_cast<void>(ftruncate(descriptor_, 0));
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
  if (Status opened = Open(path, 0, "open"); !opened.ok()) return opened;
  offset_ = valid_bytes;
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
