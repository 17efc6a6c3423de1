// The FastTrack rules (FastTrack, Figure 3) on one cell of shadow memory.
//
// Freestanding: general integer code, memory only from the allocator policy. The host detector and
// whatever runs inside the guest use the same source.
#pragma once

#include <cstdint>

#include "detector/access_record.h"
#include "detector/epoch.h"
#include "detector/reader_list.h"

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

// W_x and R_x of one cell, a quarter of a cache line. R_x is an access or, once reads were
// concurrent, a list with the last read of each thread. `Past` stands for a thread's clock C_t:
//   bool Covers(const AccessRecord&) const           whether what it tells of happened before
//   ThreadId ThreadOf(const AccessRecord&) const     kMaxThreads: of an empty one
// Memory: as BlockPool.
template <class Memory>
class alignas(16) FastTrackCell {
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

  // [FT READ SAME EPOCH] and [FT WRITE SAME EPOCH], the check worth inlining: whether the access
  // remembered is one of the thread of E_t, since its clock. Without a branch on `kind`, which is
  // hard to guess.
  template <class ThreadOf>
  [[gnu::always_inline]] bool InEpoch(EventKind kind, Epoch epoch, ThreadOf&& thread_of) const {
    const AccessRecord& record = kind == EventKind::kWrite ? write_ : read_;
    return record.IsAfter(epoch.clock()) && thread_of(record) == epoch.thread();
  }

  bool empty() const { return write_.empty() && read_.empty(); }
  // Whether both cells remember the same accesses.
  bool HasHistoryOf(const FastTrackCell& other) const {
    return !shared() && !other.shared() && write_ == other.write_ && read_ == other.read_;
  }

  // Whether like(AccessRecord, AccessRecord) holds of both cells' writes and reads; lists of
  // readers are like none.
  template <class Like>
  bool HasHistoriesLike(const FastTrackCell& other, Like&& like) const {
    return like(write_, other.write_) && like(read_, other.read_);
  }

  // The other rules for a read by the thread whose clock is `past` and whose epoch is E_t; now() is
  // its AccessRecord, asked for only if it is to be remembered, and empty if it cannot be. Calls
  // on_race(const AccessRecord& prior, EventKind kind_of_prior) for each race.
  template <class Past, class Now, class OnRace>
  [[gnu::always_inline]] FastTrackRule Read(Memory& memory, Epoch epoch, const Past& past,
                                            Now&& now, OnRace&& on_race) {
    if (!past.Covers(write_)) on_race(write_, EventKind::kWrite);  // W_x ≼ C_t
    if (shared()) {
      // [FT READ SHARED] R_x(t) := C_t(t)
      const Readers readers = this->readers();
      const std::uint32_t mine = FindIn(readers, epoch.thread(), past);
      if (!readers.At(mine).IsAfter(epoch.clock())) PutIn(readers, mine, now(), past);
      return kReadShared;
    }
    const AccessRecord access = now();
    if (past.Covers(read_)) {
      // [FT READ EXCLUSIVE] R_x := E_t
      read_ = access;
      return kReadExclusive;
    }
    // [FT READ SHARE] R_x := {the old read, E_t}
    Share(memory, access, past);
    return kReadShare;
  }

  // Likewise for a write.
  template <class Past, class Now, class OnRace>
  [[gnu::always_inline]] FastTrackRule Write(const Past& past, Now&& now, OnRace&& on_race) {
    Check(past, true, on_race);            // W_x ≼ C_t, R_x ⊑ C_t
    FastTrackRule rule = kWriteExclusive;  // [FT WRITE EXCLUSIVE]
    if (shared()) {
      // [FT WRITE SHARED] R_x := ⊥
      DropReaders();
      read_ = {};
      rule = kWriteShared;
    }
    write_ = now();  // W_x := E_t
    return rule;
  }

  // The checks of a read or write without its effect: for accesses remembered elsewhere (atomics).
  template <class Past, class OnRace>
  [[gnu::always_inline]] void Check(const Past& past, bool is_write, OnRace&& on_race) const {
    if (!past.Covers(write_)) on_race(write_, EventKind::kWrite);
    if (!is_write) return;
    if (!shared()) {
      if (!past.Covers(read_)) on_race(read_, EventKind::kRead);
      return;
    }
    readers().ForEach([&](const AccessRecord& reader) {
      if (!past.Covers(reader)) on_race(reader, EventKind::kRead);
    });
  }

  // The thread of `epoch` has read or written again what it had before, then, and nobody else has
  // done anything in between that this could race with: W_x or R_x(t) moves on, to now(what it
  // was). The checks find what came at the same time.
  template <class Past, class Now, class OnRace>
  void Repeat(Memory& memory, bool is_write, Epoch epoch, const Past& past, Now&& now,
              OnRace&& on_race) {
    Check(past, is_write, on_race);
    const auto advanced = [&](const AccessRecord& record) {
      return record.moment() <= epoch.clock() ? now(record) : record;
    };
    if (is_write) {
      // Empty: what was told of it has been forgotten since.
      if (write_.empty() || past.ThreadOf(write_) == epoch.thread()) write_ = advanced(write_);
    } else if (shared()) {
      const Readers readers = this->readers();
      const std::uint32_t mine = FindIn(readers, epoch.thread(), past);
      PutIn(readers, mine, advanced(readers.At(mine)), past);
    } else if (read_.empty() || past.ThreadOf(read_) == epoch.thread()) {
      read_ = advanced(read_);
    } else {
      Share(memory, now(AccessRecord()), past);
    }
  }

  // Replaces all accesses remembered by change(const AccessRecord&), of the same threads.
  template <class Change>
  void Transform(Change&& change) {
    if (!write_.empty()) write_ = change(write_);
    if (shared()) {
      readers().Transform(change);
    } else if (!read_.empty()) {
      read_ = change(read_);
    }
  }

  // A hint that Read or Write comes soon. The cell itself should be at hand.
  [[gnu::always_inline]] void Prefetch() const { Readers::Prefetch(read_); }

 private:
  using Readers = ReaderList<Memory>;

  template <class Past>
  [[gnu::always_inline]] static std::uint32_t FindIn(const Readers& readers, ThreadId thread,
                                                     const Past& past) {
    return readers.Find(thread, ThreadsOf(past));
  }
  template <class Past>
  [[gnu::always_inline]] static auto ThreadsOf(const Past& past) {
    return [&past](const AccessRecord& read) __attribute__((always_inline)) {
      return past.ThreadOf(read);
    };
  }
  // What cannot be remembered leaves the thread's read before as it was, or is missed.
  template <class Past>
  [[gnu::always_inline]] void PutIn(Readers readers, std::uint32_t at, const AccessRecord& read,
                                    const Past& past) {
    if (read.empty()) [[unlikely]]
      return;
    if (readers.Put(at, read, ThreadsOf(past))) [[unlikely]]
      SetReaders(readers);
  }
  template <class Past>
  void Share(Memory& memory, const AccessRecord& read, const Past& past) {
    if (!read.empty()) SetReaders(Readers::New(memory, read_, read, ThreadsOf(past)));
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

}  // namespace trapline
