// The shared memory through which a workload's events reach the drain: creating, attaching,
// removing it. What lies in it is log_producer.h.
#pragma once

#include <boost/interprocess/mapped_region.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "replay/log_file.h"
#include "replay/log_metadata.h"
#include "replay/log_producer.h"
#include "replay/status.h"

namespace trapline {

struct SegmentOptions {
  // Bound on the memory that undrained events take. Every thread with events holds one chunk, so
  // there should be several chunks per thread.
  std::uint64_t memory_bytes = 64 << 20;
  std::uint32_t chunk_bytes = 64 << 10;  // 1 KiB .. kMaxChunkBytes
  std::uint32_t metadata_bytes = 1 << 20;
};

// A mapping of a segment. Movable; unmaps on destruction, but never removes the name.
class LogSegment {
 public:
  LogSegment() = default;

  // Creates the segment `name` (as for shm_open, without slash), for this process as producer.
  Status Create(const std::string& name, const SegmentOptions& options,
                const LogMetadata& metadata);
  // Maps an existing one, after checking that its layout is one that Create makes.
  Status Attach(const std::string& name);
  // Removes the name; mappings stay. True if there was one.
  static bool Remove(const std::string& name);

  const std::string& name() const { return name_; }
  SegmentHeader& header() const { return *view_.header; }
  const ProducerView& view() const { return view_; }
  RecordingId recording() const { return {header().recording_low, header().recording_high}; }

  // Producer: adds a JSON object (a module loaded late). One thread at a time. False: no room.
  bool AddMetadata(const nlohmann::json& object) const;
  // Drain: the metadata object at *position, moved on behind it; empty if there is none yet.
  std::string_view NextMetadata(std::uint32_t* position) const;

 private:
  std::string name_;
  boost::interprocess::mapped_region region_;
  ProducerView view_{};
};

// When process `pid` began, in clock ticks since boot: tells it from a later one of the same
// number. 0 if there is none.
std::uint64_t ProcessStart(int pid);

// Nanoseconds of CLOCK_MONOTONIC.
std::uint64_t MonotonicNs();

}  // namespace trapline
