// The concurrent reads of one cell: R_x once it is a vector clock (FastTrack, section 3).
//
// Freestanding: general integer code, memory only from the allocator policy.
#pragma once

#include <cstdint>

#include "detector/access_record.h"

namespace trapline {

// The last read of each thread that has one, in one block of memory: the epochs side by side, and
// then what else is known of the reads. Finding a thread's read, and finding that it is of the same
// epoch, which is what most reads come to, touches the first cache lines only.
//
// A value that refers to the block: copies share it, and one of them deletes it. Fits into an
// AccessRecord that is none, so that a cell needs no header in the block. Not thread-safe.
template <class Allocator>
class ReaderList {
 public:
  // A list of two reads by different threads.
  static ReaderList New(const AccessRecord& first, const AccessRecord& second) {
    ReaderList list(Allocate(2), 2);
    list.Set(0, first);
    list.Set(1, second);
    return list;
  }
  ReaderList NewCopy() const { return ReaderList(CopiedTo(Capacity()), size_); }
  void Delete() { Allocator::Free(words_, BytesFor(Capacity())); }

  // Whether `record` is what InRecord makes of a list: an epoch without a clock, but not the
  // minimal one.
  static bool IsIn(const AccessRecord& record) {
    return record.epoch.bits() - 1 < (std::uint64_t{1} << kSizeBits) - 1;
  }
  static ReaderList From(const AccessRecord& record) {
    return ReaderList(reinterpret_cast<std::uint64_t*>(record.position_place),
                      static_cast<std::uint32_t>(record.epoch.bits()));
  }
  AccessRecord InRecord() const {
    return {Epoch::FromBits(size_), reinterpret_cast<std::uint64_t>(words_)};
  }

  // Where the read of `thread` is; size() if there is none.
  std::uint32_t Find(ThreadId thread) const {
    std::uint32_t i = 0;
    while (i < size_ && EpochAt(i).thread() != thread) ++i;
    return i;
  }
  std::uint32_t size() const { return size_; }
  Epoch EpochAt(std::uint32_t i) const { return Epoch::FromBits(words_[i]); }

  // `record` becomes the last read of its thread, which Find has found at `i`.
  void Put(std::uint32_t i, const AccessRecord& record) {
    if (i == size_) {
      if (size_ == Capacity()) {
        std::uint64_t* const larger = CopiedTo(2 * size_);
        Delete();
        words_ = larger;
      }
      ++size_;
    }
    Set(i, record);
  }

  // Calls visit(const AccessRecord&) for each read.
  template <class Visit>
  void ForEach(Visit&& visit) const {
    for (std::uint32_t i = 0; i < size_; ++i) visit(At(i));
  }
  // Replaces each read by change(const AccessRecord&), one of the same epoch.
  template <class Change>
  void Transform(Change&& change) {
    for (std::uint32_t i = 0; i < size_; ++i) Set(i, change(At(i)));
  }
  AccessRecord At(std::uint32_t i) const { return {EpochAt(i), words_[Capacity() + i]}; }

  // A hint that the list will be searched, and perhaps changed, soon. If there is none, `record` is
  // asked for: that costs less than a branch that is hard to guess.
  [[gnu::always_inline]] static void Prefetch(const AccessRecord& record) {
    const bool is_list = IsIn(record);
    const char* const at = reinterpret_cast<const char*>(
        is_list ? record.position_place : reinterpret_cast<std::uint64_t>(&record));
    __builtin_prefetch(at);
    __builtin_prefetch(at + (is_list && record.epoch.bits() > kInLine / 2 ? 8 * kInLine : 0), 1);
  }

 private:
  static constexpr int kSizeBits = 24;  // there are no more threads
  static_assert(kMaxThreads == ThreadId{1} << kSizeBits);
  static constexpr std::uint32_t kInLine = 8;  // words in a cache line

  ReaderList(std::uint64_t* words, std::uint32_t size) : words_(words), size_(size) {}

  // The next power of two: a list becomes larger by one read at a time, and never smaller.
  std::uint32_t Capacity() const { return 1U << (32 - __builtin_clz(size_ - 1)); }
  static std::uint64_t BytesFor(std::uint32_t capacity) { return capacity * sizeof(AccessRecord); }
  static std::uint64_t* Allocate(std::uint32_t capacity) {
    return static_cast<std::uint64_t*>(Allocator::Allocate(BytesFor(capacity)));
  }
  std::uint64_t* CopiedTo(std::uint32_t capacity) const {
    std::uint64_t* const words = Allocate(capacity);
    for (std::uint32_t i = 0; i < size_; ++i) {
      words[i] = words_[i];
      words[capacity + i] = words_[Capacity() + i];
    }
    return words;
  }

  void Set(std::uint32_t i, const AccessRecord& record) {
    words_[i] = record.epoch.bits();
    words_[Capacity() + i] = record.position_place;
  }

  std::uint64_t* words_;
  std::uint32_t size_;  // at least 2
};

}  // namespace trapline
