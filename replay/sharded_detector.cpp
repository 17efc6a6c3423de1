#include "replay/sharded_detector.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace trapline {

std::uint64_t ThreadCpuNs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void ShardMap::Set(std::uint64_t begin, std::uint64_t end, std::uint64_t shift) {
  // Cut away what the new range covers.
  auto at = moved_.upper_bound(begin);
  if (at != moved_.begin()) --at;
  while (at != moved_.end() && at->first < end) {
    const auto [old_begin, old] = *at;
    if (old.end <= begin) {
      ++at;
      continue;
    }
    at = moved_.erase(at);
    if (old_begin < begin) moved_[old_begin] = {begin, old.shift};
    if (old.end > end) at = moved_.insert_or_assign(end, Moved{old.end, old.shift}).first;
  }
  if (shift != 0) moved_[begin] = {end, shift};
}

void ShardMap::Copy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
  // Memory ends at 2^64; a range that would go beyond is cut there, as detectors do.
  size = std::min({size, 0 - destination - 1, 0 - source - 1});
  struct Range {
    std::uint64_t begin, end, shift;
  };
  std::vector<Range> ranges;
  for (std::uint64_t at = source; at < source + size;) {
    std::uint64_t until = 0;
    const std::uint64_t shift = Shift(at, &until);
    const std::uint64_t end = until == 0 ? source + size : std::min(until, source + size);
    const std::uint64_t to_source = source - destination;
    ranges.push_back({at - to_source, end - to_source, shift + to_source});
    at = end;
  }
  for (const Range& range : ranges) Set(range.begin, range.end, range.shift);
}

ShardedDetector::ShardedDetector(std::vector<std::unique_ptr<Detector>> detectors)
    : detectors_(std::move(detectors)),
      map_(static_cast<unsigned>(detectors_.size())),
      shards_(detectors_.size()),
      begin_(static_cast<std::ptrdiff_t>(detectors_.size() + 1)),
      end_(static_cast<std::ptrdiff_t>(detectors_.size() + 1)) {
  for (unsigned i = 0; i < detectors_.size(); ++i) {
    threads_.emplace_back([this, i] { RunShard(i); });
  }
}

ShardedDetector::~ShardedDetector() {
  stop_ = true;
  begin_.arrive_and_wait();
  for (std::thread& thread : threads_) thread.join();
}

void ShardedDetector::RunShard(unsigned number) {
  Shard& shard = shards_[number];
  for (;;) {
    begin_.arrive_and_wait();
    if (stop_) return;
    for (const Indexed& indexed : shard.events) {
      detectors_[number]->OnEvent(indexed.event, indexed.index);
    }
    shard.events.clear();
    shard.cpu_ns = ThreadCpuNs();
    end_.arrive_and_wait();
  }
}

void ShardedDetector::OnEvents(std::span<const Event> events, std::uint64_t first_index) {
  std::uint64_t index = first_index;
  for (const Event& event : events) {
    if (IsPlainAccess(event.kind) || IsEarlierAccess(event.kind)) {
      map_.ForEachPiece(
          event.address, event.size,
          [&](unsigned shard, std::uint64_t address, std::uint64_t size) {
            Indexed& indexed = shards_[shard].events.emplace_back(Indexed{event, index});
            indexed.event.address = address;
            indexed.event.size = size;
            const std::uint64_t end = address + size;
            ambiguous_ =
                ambiguous_ || (end % ShardMap::kGranule != 0 && end != event.address + event.size);
          });
    } else {
      if (event.kind == EventKind::kCopyHistory) {
        map_.Copy(event.address, event.aux, event.size);
      }
      for (Shard& shard : shards_) shard.events.push_back({event, index});
    }
    ++index;
  }
  begin_.arrive_and_wait();
  end_.arrive_and_wait();
}

void ShardedDetector::Finish() {
  for (const auto& detector : detectors_) detector->Finish();
}

std::uint64_t ShardedDetector::cpu_ns() const {
  std::uint64_t sum = 0;
  for (const Shard& shard : shards_) sum += shard.cpu_ns;
  return sum;
}

}  // namespace trapline
