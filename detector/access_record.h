// What shadow memory keeps of an access. Freestanding.
#pragma once

#include <cstdint>

#include "detector/epoch.h"

namespace trapline {

// Number of what many accesses have in common (see access_places.h). 0: nothing is known.
using PlaceId = std::uint32_t;
inline constexpr int kPlaceBits = 24;

// When an access happened and its place, which also tells the thread, in 8 bytes: the fewer, the
// less a detector waits for memory. Default: no access, which happened before everything.
class AccessRecord {
 public:
  constexpr AccessRecord() = default;
  // `moment` (see MomentClocks): above 0, below 2^39; `place` not 0.
  constexpr AccessRecord(Clock moment, PlaceId place) : bits_(moment << kPlaceBits | place) {}

  constexpr Clock moment() const { return bits_ >> kPlaceBits; }
  constexpr PlaceId place() const { return bits_ & ((PlaceId{1} << kPlaceBits) - 1); }
  constexpr bool empty() const { return bits_ == 0; }

  // Whether it is an access, and came after `moment`. This may be asked of what IsOther, too.
  constexpr bool IsAfter(Clock moment) const {
    return static_cast<std::int64_t>(bits_) >> kPlaceBits > static_cast<std::int64_t>(moment);
  }

  // 63 bits of something else in the place of a record.
  static constexpr AccessRecord Other(std::uint64_t value) {
    AccessRecord record;
    record.bits_ = kOther | value;
    return record;
  }
  constexpr bool IsOther() const { return (bits_ & kOther) != 0; }
  constexpr std::uint64_t other() const { return bits_ & ~kOther; }

  friend constexpr bool operator==(const AccessRecord&, const AccessRecord&) = default;

 private:
  static constexpr std::uint64_t kOther = std::uint64_t{1} << 63;

  std::uint64_t bits_ = 0;
};
static_assert(sizeof(AccessRecord) == 8);

}  // namespace trapline
