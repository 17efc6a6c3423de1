#include "replay/log_segment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/shared_memory_object.hpp>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "replay/file_size_room.h"
#include "replay/json_text.h"

namespace trapline {
namespace {

namespace ipc = boost::interprocess;

constexpr std::uint64_t kPage = 4096;

std::uint64_t RoundUp(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

std::uint64_t MonotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t ProcessStart(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  // proc(5): the second field is the name in parentheses, the 22nd the start time.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int i = 3; i < 22; ++i) fields >> field;
  std::uint64_t start = 0;
  fields >> start;
  return start;
}

Status LogSegment::Create(const std::string& name, const SegmentOptions& options,
                          const LogMetadata& metadata) {
  SegmentHeader layout{};
  layout.chunk_bytes =
      static_cast<std::uint32_t>(RoundUp(std::clamp(options.chunk_bytes, 1U, kMaxChunkBytes)));
  layout.chunk_count = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(options.memory_bytes / layout.chunk_bytes, 2, 1U << 20));
  layout.metadata_capacity = static_cast<std::uint32_t>(RoundUp(options.metadata_bytes));
  layout.metadata_offset = RoundUp(sizeof(SegmentHeader));
  layout.control_offset = layout.metadata_offset + layout.metadata_capacity;
  layout.data_offset =
      layout.control_offset + RoundUp(std::uint64_t{layout.chunk_count} * sizeof(ChunkControl));
  layout.total_bytes = layout.data_offset + std::uint64_t{layout.chunk_count} * layout.chunk_bytes;
  const FileSizeRoom room;
  if (!room.Has(layout.total_bytes)) {
    return Status::Error(
        fmt::format("cannot create {} MiB of shared memory: files are limited to less (`ulimit -H "
                    "-f`); raise that limit",
                    layout.total_bytes >> 20));
  }
  try {
    ipc::shared_memory_object memory(ipc::create_only, name.c_str(), ipc::read_write,
                                     ipc::permissions(0600));
    // truncate allocates, so that a full /dev/shm is an error here and no signal later.
    memory.truncate(static_cast<ipc::offset_t>(layout.total_bytes));
    region_ = ipc::mapped_region(memory, ipc::read_write);
  } catch (const ipc::interprocess_exception& error) {
    if (error.get_error_code() != ipc::already_exists_error) Remove(name);
    return Status::Error(
        fmt::format("cannot create {} MiB of shared memory as {}: {}; remove what is left of it in "
                    "/dev/shm, or "
                    "make room there",
                    layout.total_bytes >> 20, name, error.what()));
  }
  name_ = name;
  auto* header = static_cast<SegmentHeader*>(region_.get_address());  // fresh memory: all zero
  header->total_bytes = layout.total_bytes;
  header->chunk_bytes = layout.chunk_bytes;
  header->chunk_count = layout.chunk_count;
  header->control_offset = layout.control_offset;
  header->data_offset = layout.data_offset;
  header->metadata_offset = layout.metadata_offset;
  header->metadata_capacity = layout.metadata_capacity;
  const RecordingId id = RecordingId::Random();
  header->recording_low = id.low;
  header->recording_high = id.high;
  header->start_ns = MonotonicNs();
  header->producer_pid = getpid();
  header->producer_start = ProcessStart(getpid());
  header->lost_from.store(kNoSequence);
  view_ = ProducerView::Of(header);
  if (!AddMetadata(metadata.ToJson())) {
    Remove(name);
    return Status::Error(
        fmt::format("cannot record: the description of the program takes more than {} bytes",
                    layout.metadata_capacity));
  }
  header->magic.store(SegmentHeader::kMagic, std::memory_order_release);
  return {};
}

Status LogSegment::Attach(const std::string& name) {
  try {
    const ipc::shared_memory_object memory(ipc::open_only, name.c_str(), ipc::read_write);
    region_ = ipc::mapped_region(memory, ipc::read_write);
  } catch (const ipc::interprocess_exception& error) {
    return Status::Error(fmt::format(
        "cannot open shared memory {}: {}; is the recording still there?", name, error.what()));
  }
  name_ = name;
  auto* header = static_cast<SegmentHeader*>(region_.get_address());
  const std::uint64_t size = region_.get_size();
  const bool valid =
      size >= sizeof(SegmentHeader) &&
      header->magic.load(std::memory_order_acquire) == SegmentHeader::kMagic &&
      header->total_bytes == size && header->chunk_bytes <= kMaxChunkBytes &&
      header->chunk_bytes >= kPage && header->metadata_offset <= size &&
      header->metadata_capacity <= size - header->metadata_offset &&
      header->control_offset <= size && header->control_offset % alignof(ChunkControl) == 0 &&
      std::uint64_t{header->chunk_count} * sizeof(ChunkControl) <= size - header->control_offset &&
      header->data_offset <= size &&
      std::uint64_t{header->chunk_count} * header->chunk_bytes <= size - header->data_offset;
  if (!valid) {
    return Status::Error(
        fmt::format("shared memory {} is not that of a recording of this version", name));
  }
  view_ = ProducerView::Of(header);
  return {};
}

bool LogSegment::Remove(const std::string& name) {
  return ipc::shared_memory_object::remove(name.c_str());
}

bool LogSegment::AddMetadata(const nlohmann::json& object) const {
  const std::string text = JsonText(object);
  const std::uint32_t used = header().metadata_bytes.load();
  if (text.size() + sizeof(std::uint32_t) > header().metadata_capacity - used) return false;
  char* at = reinterpret_cast<char*>(&header()) + header().metadata_offset + used;
  const auto size = static_cast<std::uint32_t>(text.size());
  std::memcpy(at, &size, sizeof(size));
  std::copy(text.begin(), text.end(), at + sizeof(size));
  header().metadata_bytes.store(used + static_cast<std::uint32_t>(sizeof(size)) + size,
                                std::memory_order_release);
  return true;
}

std::string_view LogSegment::NextMetadata(std::uint32_t* position) const {
  const std::uint32_t used =
      std::min(header().metadata_bytes.load(std::memory_order_acquire), header().metadata_capacity);
  std::uint32_t size = 0;
  if (used - *position < sizeof(size) || *position > used) return {};
  const char* at = reinterpret_cast<const char*>(&header()) + header().metadata_offset + *position;
  std::memcpy(&size, at, sizeof(size));
  if (size > used - *position - sizeof(size)) return {};
  *position += static_cast<std::uint32_t>(sizeof(size)) + size;
  return {at + sizeof(size), size};
}

}  // namespace trapline
