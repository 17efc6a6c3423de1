// The FastTrack rules (FastTrack, Figure 3) on one cell of shadow memory.
//
// Freestanding: general integer code, memory only from the allocator policy. The host detector and
// whatever runs inside the guest use the same source.
#pragma once

#include <cstdint>

#include "detector/access_record.h"
#include "detector/epoch.h"
#include "detector/reader_list.h"
#include "detector/vector_clock.h"

namespace trapline {

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

// W_x and R_x of one cell, half a cache line. R_x is an epoch or, once reads were concurrent, a
// list with the last read of each thread.
template <class Allocator>
class alignas(32) FastTrackCell {
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

  // [FT READ SAME EPOCH] and [FT WRITE SAME EPOCH], the check worth inlining; without a branch on
  // `kind`, which is hard to guess.
  [[gnu::always_inline]] bool InEpoch(EventKind kind, Epoch epoch) const {
    return (kind == EventKind::kWrite ? write_ : read_).epoch == epoch;
  }

  // Whether both cells remember the same accesses.
  bool HasHistoryOf(const FastTrackCell& other) const {
    return !shared() && !other.shared() && write_ == other.write_ && read_ == other.read_;
  }

  // The other rules for a read by the thread whose clock is C_t and whose epoch is E_t; now() is
  // its AccessRecord, asked for only if it is to be remembered. Calls on_race(const AccessRecord&
  // prior, EventKind kind_of_prior) for each race.
  template <class Now, class OnRace>
  [[gnu::always_inline]] FastTrackRule Read(Epoch epoch, const VectorClockOver<Allocator>& clock,
                                            Now&& now, OnRace&& on_race) {
    if (!clock.Covers(write_.epoch)) on_race(write_, EventKind::kWrite);  // W_x ≼ C_t
    if (shared()) {
      // [FT READ SHARED] R_x(t) := C_t(t)
      Readers readers = this->readers();
      const std::uint32_t mine = readers.Find(epoch.thread());
      if (mine < readers.size() && readers.EpochAt(mine) == epoch) return kReadShared;
      readers.Put(mine, now());
      SetReaders(readers);
      return kReadShared;
    }
    const AccessRecord access = now();
    if (clock.Covers(read_.epoch)) {
      // [FT READ EXCLUSIVE] R_x := E_t
      read_ = access;
      return kReadExclusive;
    }
    // [FT READ SHARE] R_x := {the old read, E_t}
    SetReaders(Readers::New(read_, access));
    return kReadShare;
  }

  // Likewise for a write.
  template <class Now, class OnRace>
  [[gnu::always_inline]] FastTrackRule Write(const VectorClockOver<Allocator>& clock, Now&& now,
                                             OnRace&& on_race) {
    if (!clock.Covers(write_.epoch)) on_race(write_, EventKind::kWrite);  // W_x ≼ C_t
    FastTrackRule rule = kWriteExclusive;
    if (!shared()) {
      // [FT WRITE EXCLUSIVE] R_x ≼ C_t
      if (!clock.Covers(read_.epoch)) on_race(read_, EventKind::kRead);
    } else {
      // [FT WRITE SHARED] R_x ⊑ C_t; R_x := ⊥
      readers().ForEach([&](const AccessRecord& reader) {
        if (!clock.Covers(reader.epoch)) on_race(reader, EventKind::kRead);
      });
      DropReaders();
      read_ = {};
      rule = kWriteShared;
    }
    write_ = now();  // W_x := E_t
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
    readers().ForEach([&](const AccessRecord& reader) {
      if (!clock.Covers(reader.epoch)) on_race(reader, EventKind::kRead);
    });
  }

  // The thread of `epoch` has read or written again what it had before, then, and nobody else has
  // done anything in between that this could race with: W_x or R_x(t) moves on, to now(what it
  // was). The checks find what came at the same time.
  template <class Now, class OnRace>
  void Repeat(bool is_write, Epoch epoch, const VectorClockOver<Allocator>& clock, Now&& now,
              OnRace&& on_race) {
    Check(clock, is_write, on_race);
    if (is_write) {
      if (write_.epoch.thread() == epoch.thread()) Advance(write_, epoch, now);
    } else if (shared()) {
      Readers readers = this->readers();
      const std::uint32_t mine = readers.Find(epoch.thread());
      AccessRecord read = mine < readers.size() ? readers.At(mine) : AccessRecord{};
      Advance(read, epoch, now);
      readers.Put(mine, read);
      SetReaders(readers);
    } else if (read_.epoch.empty() || read_.epoch.thread() == epoch.thread()) {
      Advance(read_, epoch, now);
    } else {
      SetReaders(Readers::New(read_, now(AccessRecord{})));
    }
  }

  // Replaces all accesses remembered by change(const AccessRecord&), of the same epochs.
  template <class Change>
  void Transform(Change&& change) {
    if (!write_.epoch.empty()) write_ = change(write_);
    if (shared()) {
      readers().Transform(change);
    } else if (!read_.epoch.empty()) {
      read_ = change(read_);
    }
  }

  // A hint that Read or Write comes soon. The cell itself should be at hand.
  [[gnu::always_inline]] void Prefetch() const { Readers::Prefetch(read_); }

 private:
  using Readers = ReaderList<Allocator>;

  template <class Now>
  static void Advance(AccessRecord& record, Epoch epoch, Now&& now) {
    if (record.epoch.clock() < epoch.clock()) record = now(record);
  }

  bool shared() const { return Readers::IsIn(read_); }
  Readers readers() const { return Readers::From(read_); }
  void SetReaders(const Readers& readers) { read_ = readers.InRecord(); }

  void CopyFrom(const FastTrackCell& other) {
    write_ = other.write_;
    read_ = other.read_;
    if (other.shared()) SetReaders(other.readers().NewCopy());
  }

  void DropReaders() {
    if (shared()) readers().Delete();
  }

  AccessRecord write_;
  AccessRecord read_;  // or Readers
};
static_assert(sizeof(FastTrackCell<HostAllocator>) == 32);

}  // namespace trapline
