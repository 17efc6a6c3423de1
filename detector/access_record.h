// What shadow memory keeps of an access. Freestanding.
#pragma once

#include <cstdint>

#include "detector/epoch.h"

namespace trapline {

// Number of what many accesses have in common (see access_places.h). 0: nothing is known.
using PlaceId = std::uint32_t;
inline constexpr int kPlaceBits = 24;

// When an access happened, its position in the stream (below 2^40) and its place, in 16 bytes: the
// fewer, the less a detector waits for memory.
struct AccessRecord {
  Epoch epoch;
  std::uint64_t position_place = 0;

  static AccessRecord Make(Epoch epoch, std::uint64_t position, PlaceId place) {
    return {epoch, position << kPlaceBits | place};
  }
  std::uint64_t position() const { return position_place >> kPlaceBits; }
  PlaceId place() const { return position_place & ((PlaceId{1} << kPlaceBits) - 1); }
  void set_place(PlaceId place) { *this = Make(epoch, position(), place); }

  friend bool operator==(const AccessRecord&, const AccessRecord&) = default;
};
static_assert(sizeof(AccessRecord) == 16);

}  // namespace trapline
