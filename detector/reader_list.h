// The concurrent reads of one cell: R_x once it is a vector clock (FastTrack, section 3).
//
// Freestanding: general integer code, memory only from the allocator policy.
#pragma once

#include <algorithm>
#include <cstdint>

#include "detector/access_record.h"

namespace trapline {

// The last read of each thread that has one, in one block of memory: those of eight threads are a
// cache line. Most threads' reads are at home, where their numbers say.
//
// A value that refers to the block: copies share it, and one of them deletes it. Fits into an
// AccessRecord. Not thread-safe. Memory: as BlockPool. threads(AccessRecord) tells a record's
// thread, of an empty one none.
template <class Memory>
class ReaderList {
 public:
  // A list of two reads by different threads.
  template <class Threads>
  static ReaderList New(Memory& memory, const AccessRecord& first, const AccessRecord& second,
                        Threads&& threads) {
    ReaderList list(static_cast<AccessRecord*>(memory.Allocate(BytesFor(kFirstCapacity))),
                    kFirstCapacity);
    for (std::uint32_t i = 0; i < kFirstCapacity; ++i) list.reads_[i] = AccessRecord();
    for (const AccessRecord& read : {first, second})
      list.reads_[list.RoomFor(threads(read))] = read;
    return list;
  }
  ReaderList NewCopy() const {
    const ReaderList copy = Beside(capacity_);
    std::copy_n(reads_, capacity_, copy.reads_);
    return copy;
  }
  void Delete() { Memory::Free(reads_, BytesFor(capacity_)); }

  static bool IsIn(const AccessRecord& record) { return record.IsOther(); }
  static ReaderList From(const AccessRecord& record) {
    const std::uint64_t bits = record.other();
    return ReaderList(
        reinterpret_cast<AccessRecord*>(bits & ((std::uint64_t{1} << kPointerBits) - 1)),
        std::uint32_t{1} << (bits >> kPointerBits));
  }
  AccessRecord InRecord() const {
    return AccessRecord::Other(static_cast<std::uint64_t>(__builtin_ctz(capacity_))
                                   << kPointerBits |
                               reinterpret_cast<std::uint64_t>(reads_));
  }

  // Where the read of `thread` is or, without one, has room: at an empty one or behind the end.
  template <class Threads>
  [[gnu::always_inline]] std::uint32_t Find(ThreadId thread, Threads&& threads) const {
    const std::uint32_t home = HomeOf(thread);
    if (threads(reads_[home]) == thread) [[likely]]
      return home;
    return FindElsewhere(thread, threads);
  }
  AccessRecord At(std::uint32_t i) const { return i < capacity_ ? reads_[i] : AccessRecord(); }

  // `record` becomes the last read of its thread, which Find has found at `i`. Returns whether the
  // list is in another block now.
  template <class Threads>
  [[gnu::always_inline]] bool Put(std::uint32_t i, const AccessRecord& record, Threads&& threads) {
    const bool full = i == capacity_;
    if (full) [[unlikely]] {
      *this = Larger(*this, threads);
      i = RoomFor(threads(record));
    }
    reads_[i] = record;
    return full;
  }

  // Calls visit(const AccessRecord&) for each read.
  template <class Visit>
  void ForEach(Visit&& visit) const {
    for (std::uint32_t i = 0; i < capacity_; ++i) {
      if (!reads_[i].empty()) visit(reads_[i]);
    }
  }
  // Replaces each read by change(const AccessRecord&), one of the same thread.
  template <class Change>
  void Transform(Change&& change) {
    for (std::uint32_t i = 0; i < capacity_; ++i) {
      if (!reads_[i].empty()) reads_[i] = change(reads_[i]);
    }
  }

  // A hint that the list will be searched, and perhaps changed, soon. If there is none, `record` is
  // asked for: that costs less than a branch that is hard to guess.
  [[gnu::always_inline]] static void Prefetch(const AccessRecord& record) {
    __builtin_prefetch(IsIn(record) ? From(record).reads_ : &record, 1);
  }

 private:
  static constexpr int kPointerBits = 56;
  static constexpr std::uint32_t kFirstCapacity = 2;
  ReaderList(AccessRecord* reads, std::uint32_t capacity) : reads_(reads), capacity_(capacity) {}

  std::uint32_t HomeOf(ThreadId thread) const { return thread & (capacity_ - 1); }
  // Room for a thread that has no read here: its home or, if another's read is there, the first
  // empty one; else behind the end.
  std::uint32_t RoomFor(ThreadId thread) const {
    const std::uint32_t home = HomeOf(thread);
    if (reads_[home].empty()) return home;
    std::uint32_t at = 0;
    while (at < capacity_ && !reads_[at].empty()) ++at;
    return at;
  }
  template <class Threads>
  [[gnu::noinline]] std::uint32_t FindElsewhere(ThreadId thread, Threads& threads) const {
    for (std::uint32_t i = 0; i < capacity_; ++i) {
      if (threads(reads_[i]) == thread) return i;
    }
    return RoomFor(thread);
  }

  static std::uint64_t BytesFor(std::uint32_t capacity) {
    return std::uint64_t{capacity} * sizeof(AccessRecord);
  }
  // Takes the place of `list`.
  template <class Threads>
  [[gnu::noinline]] static ReaderList Larger(ReaderList list, Threads& threads) {
    const ReaderList larger = list.Beside(2 * list.capacity_);
    for (std::uint32_t i = 0; i < larger.capacity_; ++i) larger.reads_[i] = AccessRecord();
    list.ForEach(
        [&](const AccessRecord& read) { larger.reads_[larger.RoomFor(threads(read))] = read; });
    list.Delete();
    return larger;
  }
  // A block beside this one, its reads to be set.
  ReaderList Beside(std::uint32_t capacity) const {
    return ReaderList(
        static_cast<AccessRecord*>(Memory::AllocateBeside(reads_, BytesFor(capacity))), capacity);
  }

  AccessRecord* reads_;
  std::uint32_t capacity_;  // a power of two
};

}  // namespace trapline
