// What reports say of earlier accesses beyond when they happened, kept once for all accesses that
// have it in common, so that shadow memory needs a number only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "detector/access_record.h"
#include "detector/event.h"
#include "detector/hash.h"

namespace trapline {

// An instruction with its call stack, and where its access lies. Of a short access that is a
// distance, so that a loop over an array has few places, and one to the word whose history
// remembers it, so that all cells of a word that was accessed at once remember the same. Of a long
// one (memcpy, read) it is the address, so that it has one place for all its words.
struct AccessPlace {
  std::uint64_t ip = 0;
  std::uint64_t where =
      0;  // from the first byte of the access to the word, may wrap; or its address
  std::uint32_t size = 0;
  std::uint32_t stack = 0;

  // The place of an access as the word at `word` remembers it.
  static AccessPlace Make(std::uint64_t ip, std::uint64_t address, std::uint32_t size,
                          std::uint32_t stack, std::uint64_t word) {
    return {ip, IsLong(size) ? address : word - address, size, stack};
  }
  // The address of that access.
  std::uint64_t AddressFor(std::uint64_t word) const { return IsLong(size) ? where : word - where; }
  // The history has moved to a word `distance` bytes further; what it tells of has not.
  void Move(std::uint64_t distance) {
    if (!IsLong(size)) where += distance;
  }

  friend bool operator==(const AccessPlace&, const AccessPlace&) = default;

 private:
  // Longer than any instruction's single access.
  static bool IsLong(std::uint32_t size) { return size > 64; }
};

// Not thread-safe.
class AccessPlaces {
 public:
  AccessPlaces() : places_(1), recent_(kRecent) {}

  // The number of `place`, 0 when there are too many that are in use.
  [[gnu::always_inline]] PlaceId IdOf(const AccessPlace& place) {
    // The distance is a multiple of the access's size, mostly; hence the shift.
    const std::uint64_t key =
        place.ip + (std::uint64_t{place.stack} << 32) + (place.where << 20) + place.size;
    Recent& recent = recent_[key * 0x9e3779b97f4a7c15u >> (64 - kRecentBits)];
    if (recent.id == 0 || recent.place != place) [[unlikely]]
      recent = {place, Find(place)};
    return recent.id;
  }

  const AccessPlace& operator[](PlaceId id) const { return places_[id]; }

  // There are twice as many as were in use last time: time to find out which ones still are.
  bool WantsCollection() const { return ids_.size() >= collect_at_; }
  // Forgets all places but those whose element of `used` is true.
  void Collect(const std::vector<bool>& used);
  // The length of that vector.
  std::size_t id_limit() const { return places_.size(); }

 private:
  struct Hash {
    std::size_t operator()(const AccessPlace& place) const {
      return HashOf(place.ip, place.where, place.size, place.stack);
    }
  };
  struct Recent {
    AccessPlace place;
    PlaceId id = 0;
  };
  static constexpr int kRecentBits = 13;
  static constexpr std::size_t kRecent = std::size_t{1} << kRecentBits;
  static constexpr std::size_t kMaxPlaces = (std::size_t{1} << kPlaceBits) - 1;
  static constexpr std::size_t kFirstCollection = std::size_t{1} << 18;

  PlaceId Find(const AccessPlace& place);

  std::vector<AccessPlace> places_;  // by number; 0 is that of the unknown one
  std::vector<PlaceId> free_;
  std::unordered_map<AccessPlace, PlaceId, Hash> ids_;
  std::vector<Recent> recent_;  // direct-mapped
  std::size_t collect_at_ = kFirstCollection;
};

}  // namespace trapline
