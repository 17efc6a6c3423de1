// The FastTrack rules (FastTrack, Figure 3) on one cell of shadow memory.
//
// Freestanding: general integer code, memory only from the allocator policy. The host detector and
// whatever runs inside the guest use the same source.
#pragma once

#include <cstdint>
#include <new>

#include "detector/detector.h"
#include "detector/epoch.h"
#include "detector/growing_array.h"
#include "detector/vector_clock.h"

namespace trapline {

// When an access happened and all that a report says of it, in 32 bytes. Addresses are kept in 48
// bits and sign-extended, event positions in 48; sizes are below 2^16 (detectors work on pieces of
// 2^15).
struct AccessRecord {
  Epoch epoch;
  std::uint64_t ip_size = 0;         // 48 bits of the instruction's address, 16 of the size
  std::uint64_t address_stack = 0;   // 48 bits of the address, the stack's low half
  std::uint64_t position_stack = 0;  // 48 bits of the position in the stream, the stack's high half

  friend bool operator==(const AccessRecord&, const AccessRecord&) = default;

  static AccessRecord Make(Epoch epoch, const Event& event, std::uint64_t index) {
    return {epoch, event.ip << 16 | (event.size & 0xffff),
            event.address << 16 | (event.stack & 0xffff), index << 16 | event.stack >> 16};
  }

  Access Unpack(EventKind kind) const {
    return {.index = position_stack >> 16,
            .address = SignExtend(address_stack),
            .size = ip_size & 0xffff,
            .ip = SignExtend(ip_size),
            .stack = static_cast<std::uint32_t>((position_stack & 0xffff) << 16 |
                                                (address_stack & 0xffff)),
            .thread = epoch.thread(),
            .kind = kind};
  }

 private:
  static std::uint64_t SignExtend(std::uint64_t field) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(field) >> 16);
  }
};
static_assert(sizeof(AccessRecord) == 32);

enum FastTrackRule : std::uint8_t {
  kReadSameEpoch,
  kReadShared,
  kReadExclusive,
  kReadShare,
  kWriteSameEpoch,
  kWriteExclusive,
  kWriteShared,
  kFastTrackRules
};

// W_x and R_x of one cell, one cache line. R_x is an epoch or, once reads were concurrent, a list
// with the last read of each thread.
template <class Allocator>
class alignas(64) FastTrackCell {
 public:
  FastTrackCell() = default;
  FastTrackCell(const FastTrackCell& other) { CopyFrom(other); }
  FastTrackCell& operator=(const FastTrackCell& other) {
    if (this == &other) return *this;
    DropReaders();
    CopyFrom(other);
    return *this;
  }
  ~FastTrackCell() { DropReaders(); }

  // [FT READ SAME EPOCH] and [FT WRITE SAME EPOCH], the two checks worth inlining.
  bool ReadInEpoch(Epoch epoch) const { return read_.epoch == epoch; }
  bool WrittenInEpoch(Epoch epoch) const { return write_.epoch == epoch; }

  // Whether both cells remember the same accesses.
  bool HasHistoryOf(const FastTrackCell& other) const {
    return !shared() && !other.shared() && write_ == other.write_ && read_ == other.read_;
  }

  // The other rules for a read by the thread whose clock is C_t and whose epoch is E_t. Calls
  // on_race(const AccessRecord& prior, EventKind kind_of_prior) for each race.
  template <class OnRace>
  FastTrackRule Read(Epoch epoch, const VectorClockOver<Allocator>& clock, const Event& event,
                     std::uint64_t index, OnRace&& on_race) {
    if (!clock.Covers(write_.epoch)) on_race(write_, EventKind::kWrite);  // W_x ≼ C_t
    if (shared()) {
      // [FT READ SHARED] R_x(t) := C_t(t)
      PutReader(AccessRecord::Make(epoch, event, index));
      return kReadShared;
    }
    if (clock.Covers(read_.epoch)) {
      // [FT READ EXCLUSIVE] R_x := E_t
      read_ = AccessRecord::Make(epoch, event, index);
      return kReadExclusive;
    }
    // [FT READ SHARE] R_x := {the old read, E_t}
    auto* readers = new (Allocator::Allocate(sizeof(Readers))) Readers;
    readers->Append(read_);
    readers->Append(AccessRecord::Make(epoch, event, index));
    read_.epoch = Epoch::FromBits(kSharedTag);
    read_.ip_size = reinterpret_cast<std::uint64_t>(readers);
    return kReadShare;
  }

  // Likewise for a write.
  template <class OnRace>
  FastTrackRule Write(Epoch epoch, const VectorClockOver<Allocator>& clock, const Event& event,
                      std::uint64_t index, OnRace&& on_race) {
    if (!clock.Covers(write_.epoch)) on_race(write_, EventKind::kWrite);  // W_x ≼ C_t
    FastTrackRule rule = kWriteExclusive;
    if (!shared()) {
      // [FT WRITE EXCLUSIVE] R_x ≼ C_t
      if (!clock.Covers(read_.epoch)) on_race(read_, EventKind::kRead);
    } else {
      // [FT WRITE SHARED] R_x ⊑ C_t; R_x := ⊥
      for (const AccessRecord& reader : *readers()) {
        if (!clock.Covers(reader.epoch)) on_race(reader, EventKind::kRead);
      }
      DropReaders();
      read_ = {};
      rule = kWriteShared;
    }
    write_ = AccessRecord::Make(epoch, event, index);  // W_x := E_t
    return rule;
  }

  // The checks of a read or write without its effect: for accesses remembered elsewhere (atomics).
  template <class OnRace>
  void Check(const VectorClockOver<Allocator>& clock, bool is_write, OnRace&& on_race) const {
    if (!clock.Covers(write_.epoch)) on_race(write_, EventKind::kWrite);
    if (!is_write) return;
    if (!shared()) {
      if (!clock.Covers(read_.epoch)) on_race(read_, EventKind::kRead);
      return;
    }
    for (const AccessRecord& reader : *readers()) {
      if (!clock.Covers(reader.epoch)) on_race(reader, EventKind::kRead);
    }
  }

 private:
  using Readers = GrowingArray<AccessRecord, Allocator>;
  static constexpr std::uint64_t kSharedTag = ~std::uint64_t{0};  // not the epoch of any thread

  bool shared() const { return read_.epoch.bits() == kSharedTag; }
  Readers* readers() const { return reinterpret_cast<Readers*>(read_.ip_size); }

  void PutReader(const AccessRecord& record) {
    for (AccessRecord& reader : *readers()) {
      if (reader.epoch.thread() != record.epoch.thread()) continue;
      if (reader.epoch != record.epoch) reader = record;
      return;
    }
    readers()->Append(record);
  }

  void CopyFrom(const FastTrackCell& other) {
    write_ = other.write_;
    read_ = other.read_;
    if (!other.shared()) return;
    auto* readers = new (Allocator::Allocate(sizeof(Readers))) Readers(*other.readers());
    read_.ip_size = reinterpret_cast<std::uint64_t>(readers);
  }

  void DropReaders() {
    if (!shared()) return;
    Readers* const old = readers();
    old->~Readers();
    Allocator::Free(old, sizeof(Readers));
  }

  AccessRecord write_;
  AccessRecord read_;  // shared: epoch = kSharedTag, ip_size = the list
};
static_assert(sizeof(FastTrackCell<HostAllocator>) == 64);

}  // namespace trapline
