// The concurrent reads of one cell: R_x once it is a vector clock (FastTrack, section 3).
//
// Freestanding: general integer code, memory only from the allocator policy.
#pragma once

#include <cstdint>

#include "detector/access_record.h"

namespace trapline {

// The last read of each thread that has one, in the order of their first ones, in one block of
// memory: those of eight threads are a cache line.
//
// A value that refers to the block: copies share it, and one of them deletes it. Fits into an
// AccessRecord. Not thread-safe. Memory: as BlockPool. threads(AccessRecord) tells a record's
// thread, of an empty one none.
template <class Memory>
class ReaderList {
 public:
  // A list of two reads by different threads.
  static ReaderList New(Memory& memory, const AccessRecord& first, const AccessRecord& second) {
    ReaderList list(static_cast<AccessRecord*>(memory.Allocate(BytesFor(kFirstCapacity))),
                    kFirstCapacity);
    list.reads_[0] = first;
    list.reads_[1] = second;
    for (std::uint32_t i = 2; i < kFirstCapacity; ++i) list.reads_[i] = AccessRecord();
    return list;
  }
  ReaderList NewCopy() const { return CopyFor(capacity_); }
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
    // In steps without a branch for each read, which would be hard to guess. Most are found, so
    // empty ones are looked for afterwards.
    for (std::uint32_t begin = 0; begin < capacity_; begin += kStep) {
      const std::uint32_t found = capacity_ < kStep
                                      ? ReadsOf<kFirstCapacity>(thread, begin, threads)
                                      : ReadsOf<kStep>(thread, begin, threads);
      if (found != 0) return begin + static_cast<std::uint32_t>(__builtin_ctz(found));
    }
    std::uint32_t at = 0;
    while (at < capacity_ && !reads_[at].empty()) ++at;
    return at;
  }
  AccessRecord At(std::uint32_t i) const { return i < capacity_ ? reads_[i] : AccessRecord(); }

  // `record` becomes the last read of its thread, which Find has found at `i`. Returns whether the
  // list is in another block now.
  [[gnu::always_inline]] bool Put(std::uint32_t i, const AccessRecord& record) {
    const bool full = i == capacity_;
    if (full) [[unlikely]]
      *this = Larger(*this);
    reads_[i] = record;
    return full;
  }

  // Calls visit(const AccessRecord&) for each read.
  template <class Visit>
  void ForEach(Visit&& visit) const {
    for (std::uint32_t i = 0; i < capacity_ && !reads_[i].empty(); ++i) visit(reads_[i]);
  }
  // Replaces each read by change(const AccessRecord&), one of the same thread.
  template <class Change>
  void Transform(Change&& change) {
    for (std::uint32_t i = 0; i < capacity_ && !reads_[i].empty(); ++i)
      reads_[i] = change(reads_[i]);
  }

  // A hint that the list will be searched, and perhaps changed, soon. If there is none, `record` is
  // asked for: that costs less than a branch that is hard to guess.
  [[gnu::always_inline]] static void Prefetch(const AccessRecord& record) {
    __builtin_prefetch(IsIn(record) ? From(record).reads_ : &record, 1);
  }

 private:
  static constexpr int kPointerBits = 56;
  static constexpr std::uint32_t kFirstCapacity = 4;
  static constexpr std::uint32_t kStep = 8;

  ReaderList(AccessRecord* reads, std::uint32_t capacity) : reads_(reads), capacity_(capacity) {}

  // Which of kCount reads from `begin` on are those of `thread`: a bit for each.
  template <std::uint32_t kCount, class Threads>
  [[gnu::always_inline]] std::uint32_t ReadsOf(ThreadId thread, std::uint32_t begin,
                                               Threads& threads) const {
    std::uint32_t found = 0;
#pragma GCC unroll 8
    for (std::uint32_t i = 0; i < kCount; ++i)
      found |= static_cast<std::uint32_t>(threads(reads_[begin + i]) == thread) << i;
    return found;
  }

  static std::uint64_t BytesFor(std::uint32_t capacity) {
    return std::uint64_t{capacity} * sizeof(AccessRecord);
  }
  // Takes the place of `list`.
  [[gnu::noinline]] static ReaderList Larger(ReaderList list) {
    const ReaderList larger = list.CopyFor(2 * list.capacity_);
    list.Delete();
    return larger;
  }
  ReaderList CopyFor(std::uint32_t capacity) const {
    ReaderList copy(static_cast<AccessRecord*>(Memory::AllocateBeside(reads_, BytesFor(capacity))),
                    capacity);
    for (std::uint32_t i = 0; i < capacity; ++i) copy.reads_[i] = At(i);
    return copy;
  }

  AccessRecord* reads_;     // the empty ones behind the others
  std::uint32_t capacity_;  // a power of two
};

}  // namespace trapline
