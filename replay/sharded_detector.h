// One detector algorithm over memory split by address: N instances in N threads, each with all the
// synchronisation and its share of the accesses.
#pragma once

#include <barrier>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "detector/detector.h"

namespace trapline {

// Which shard holds the history of an address. Copied history stays with the shard that has it.
class ShardMap {
 public:
  // Memory goes to shards in pieces of this many bytes. Unsplit detectors get accesses in the same
  // pieces.
  static constexpr std::uint64_t kGranule = 32768;

  explicit ShardMap(unsigned shards) : shards_(shards) {}

  // Calls visit(shard, address, size) for the pieces of [address, address+size), in ascending
  // order.
  template <class Visit>
  void ForEachPiece(std::uint64_t address, std::uint64_t size, Visit&& visit) const {
    while (size > 0) {
      std::uint64_t until = 0;
      const std::uint64_t home = address + Shift(address, &until);
      std::uint64_t piece = kGranule - home % kGranule;
      if (piece > size) piece = size;
      if (until - address < piece && until != 0) piece = until - address;
      visit(static_cast<unsigned>(home / kGranule % shards_), address, piece);
      address += piece;
      size -= piece;
    }
  }

  // The history of [source, source+size) is that of [destination, destination+size) from now on.
  void Copy(std::uint64_t destination, std::uint64_t source, std::uint64_t size);

 private:
  struct Moved {
    std::uint64_t end;    // of the range that begins at the map's key
    std::uint64_t shift;  // address + shift is where its history was recorded first
  };

  // What to add to `address`; *until is where another answer may begin, 0 = the end of memory.
  std::uint64_t Shift(std::uint64_t address, std::uint64_t* until) const {
    *until = 0;
    if (moved_.empty()) return 0;
    const auto after = moved_.upper_bound(address);
    if (after != moved_.end()) *until = after->first;
    if (after == moved_.begin()) return 0;
    const auto& [begin, moved] = *std::prev(after);
    if (address >= moved.end) return 0;
    *until = moved.end;
    return moved.shift;
  }
  void Set(std::uint64_t begin, std::uint64_t end, std::uint64_t shift);

  std::uint64_t shards_;
  std::map<std::uint64_t, Moved> moved_;  // disjoint ranges
};

// Used by one thread at a time.
class ShardedDetector {
 public:
  // `detectors` are fresh instances of one algorithm; at least two.
  explicit ShardedDetector(std::vector<std::unique_ptr<Detector>> detectors);
  ShardedDetector(const ShardedDetector&) = delete;
  ShardedDetector& operator=(const ShardedDetector&) = delete;
  ~ShardedDetector();

  void OnEvents(std::span<const Event> events, std::uint64_t first_index);
  void Finish();

  // True once an access had to be split elsewhere than at a multiple of kGranule, because memory
  // with history was moved there. Some detectors look at an access as a whole (they check none of
  // it if all of it is known), so that the result may not be that of an unsplit one and is not to
  // be used.
  bool ambiguous() const { return ambiguous_; }

  const std::vector<std::unique_ptr<Detector>>& detectors() const { return detectors_; }
  // Processor time of all shards, in nanoseconds, so far.
  std::uint64_t cpu_ns() const;

 private:
  struct Indexed {
    Event event;
    std::uint64_t index;
  };
  struct Shard {
    std::vector<Indexed> events;
    std::uint64_t cpu_ns = 0;
  };

  void RunShard(unsigned number);

  std::vector<std::unique_ptr<Detector>> detectors_;
  ShardMap map_;
  std::vector<Shard> shards_;
  bool ambiguous_ = false;
  bool stop_ = false;
  std::barrier<> begin_;  // the shards' events are ready, or stop_ is set
  std::barrier<> end_;    // the shards are done with them
  std::vector<std::thread> threads_;
};

// Processor time of the calling thread, in nanoseconds.
std::uint64_t ThreadCpuNs();

}  // namespace trapline
