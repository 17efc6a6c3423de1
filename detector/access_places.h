// What reports say of earlier accesses beyond when they happened, kept once for all accesses that
// have it in common, so that shadow memory needs a number only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "detector/access_record.h"
#include "detector/chunked_array.h"
#include "detector/detector.h"

namespace trapline {

// An instruction of a thread with its call stack, and where its access lies. Of a short access that
// is a distance, so that a loop over an array has few places, and one to the word whose history
// remembers it, so that all cells of a word that was accessed at once remember the same. Of a long
// one (memcpy, read) it is the address, so that it has one place for all its words.
struct AccessPlace {
  std::uint64_t ip = 0;
  std::uint64_t where =
      0;  // from the first byte of the access to the word, may wrap; or its address
  std::uint32_t size_and_kind = 0;  // size below 2^24 and, above it, the kind of an atomic access
  std::uint32_t stack = 0;
  ThreadId thread = 0;

  // The place of a plain access, Event or Access, as the word at `word` remembers it. Its kind is
  // to be known from the history.
  template <class AnyAccess>
  static AccessPlace Make(const AnyAccess& access, std::uint64_t word) {
    return {access.ip, IsLong(access.size) ? access.address : word - access.address,
            static_cast<std::uint32_t>(access.size), access.stack, access.thread};
  }
  // The same for an atomic access, of whose kinds two are writes.
  static AccessPlace MakeAtomic(const Access& access, std::uint64_t word) {
    AccessPlace place = Make(access, word);
    place.size_and_kind |= static_cast<std::uint32_t>(access.kind) << kSizeBits;
    return place;
  }

  std::uint32_t size() const { return size_and_kind & ((std::uint32_t{1} << kSizeBits) - 1); }
  // Of an atomic access.
  EventKind atomic_kind() const { return static_cast<EventKind>(size_and_kind >> kSizeBits); }
  // The address of that access.
  std::uint64_t AddressFor(std::uint64_t word) const {
    return IsLong(size()) ? where : word - where;
  }
  // The history has moved to a word `distance` bytes further; what it tells of has not.
  void Move(std::uint64_t distance) {
    if (!IsLong(size())) where += distance;
  }

  // The access of `kind` at `index` in the stream that the word at `word` remembers.
  Access AccessAt(std::uint64_t index, EventKind kind, std::uint64_t word) const {
    return {.index = index,
            .address = AddressFor(word),
            .size = size(),
            .ip = ip,
            .stack = stack,
            .thread = thread,
            .kind = kind};
  }

  // One question instead of five: most often all are the same.
  [[gnu::always_inline]] friend bool operator==(const AccessPlace& a, const AccessPlace& b) {
    return ((a.ip ^ b.ip) | (a.where ^ b.where) | (a.size_and_kind ^ b.size_and_kind) |
            (a.stack ^ b.stack) | (a.thread ^ b.thread)) == 0;
  }

 private:
  static constexpr int kSizeBits = 24;

  // Longer than any instruction's single access.
  static bool IsLong(std::uint64_t size) { return size > 64; }
};

// Numbers come in blocks of one chain of threads each (MomentClocks), so that a number tells the
// chain by way of a table that is small. Not thread-safe.
class AccessPlaces {
 public:
  // Few, since of many chains each may need a few numbers only.
  static constexpr PlaceId kBlock = 8;

  // Numbers are below `limit`, a multiple of kBlock.
  explicit AccessPlaces(std::size_t limit = std::size_t{1} << kPlaceBits);

  // The number of `place`, whose thread is on `chain`; 0 when there are too many that are in use.
  [[gnu::always_inline]] PlaceId IdOf(const AccessPlace& place, ThreadId chain) {
    const std::uint64_t hash = HashOf(place);
    const Recent& recent = recent_[hash >> (64 - kRecentBits)];
    if (recent == place) [[likely]]
      return recent.id;
    return Find(place, chain, hash);
  }

  const AccessPlace& operator[](PlaceId id) const { return places_[id]; }
  // That of the place's thread. kMaxThreads: of 0.
  [[gnu::always_inline]] ThreadId ChainOf(PlaceId id) const { return chains_[id / kBlock]; }

  // Twice as many numbers are taken as were last time: time to find out which ones are in use.
  bool WantsCollection() const { return places_.size() - free_places() >= collect_at_; }
  // Forgets all places but those whose element of `used` is true.
  void Collect(const std::vector<bool>& used);
  // The length of that vector.
  std::size_t id_limit() const { return places_.size(); }

 private:
  static constexpr int kFirstBits = 10;
  static constexpr std::size_t kSlotsPerPlace = 2;  // at least
  static constexpr std::size_t kFirstCollection = std::size_t{1} << 17;

  // In free_blocks_; those of blocks in use count as taken.
  std::size_t free_places() const { return free_blocks_.size() * kBlock; }
  [[gnu::always_inline]] static std::uint64_t HashOf(const AccessPlace& place) {
    // The distance is a multiple of the access's size, mostly; hence the shift.
    const std::uint64_t key = place.ip + (std::uint64_t{place.stack} << 32) + (place.where << 20) +
                              place.size_and_kind + (std::uint64_t{place.thread} << 44);
    return key * 0x9e3779b97f4a7c15u;
  }
  // In the table, a number with bits of the hash above it, so that hardly ever a place is looked at
  // that is another one: it is likely to be in no cache.
  using Slot = std::uint32_t;
  static Slot SlotFor(PlaceId id, std::uint64_t hash) {
    return static_cast<Slot>(hash >> 31) << kPlaceBits | id;
  }
  static PlaceId IdIn(Slot slot) { return slot & ((PlaceId{1} << kPlaceBits) - 1); }
  std::size_t Next(std::size_t at) const { return (at + 1) & (table_.size() - 1); }
  // IdOf by way of the table. A copy, so that the caller's stays in registers.
  [[gnu::noinline]] PlaceId Find(AccessPlace place, ThreadId chain, std::uint64_t hash);
  PlaceId Add(const AccessPlace& place, ThreadId chain, std::uint64_t hash);
  // Into the table, which has room.
  void Insert(PlaceId id, std::uint64_t hash);
  // Makes the table anew, without the numbers for which drop(number) is true.
  template <class Drop>
  void Rebuild(int bits, Drop&& drop);
  // Gives the chain a block; false if there is none.
  bool AddBlock(ThreadId chain);

  // A loop has few places, which stay in the first-level cache here.
  struct Recent : AccessPlace {
    PlaceId id = 0;
  };
  static_assert(sizeof(Recent) == 32);
  static constexpr int kRecentBits = 12;

  std::size_t limit_;
  std::vector<Recent> recent_;        // by hash
  ChunkedArray<AccessPlace> places_;  // by number; the first block is that of the unknown one, 0
  std::vector<ThreadId> chains_;      // by number of block
  std::vector<std::vector<PlaceId>> free_;  // by chain, in its blocks
  std::vector<PlaceId> free_blocks_;        // their first numbers
  std::vector<Slot> table_;                 // by hash, with open addressing; 0: free
  int shift_ = 64 - kFirstBits;
  std::size_t size_ = 0;  // places in the table
  std::size_t collect_at_ = kFirstCollection;
};

}  // namespace trapline
