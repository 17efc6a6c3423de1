// The concurrent reads of one cell: R_x once it is a vector clock (FastTrack, section 3).
//
// Freestanding: general integer code, memory only from the allocator policy.
#pragma once

#include <cstdint>
#include <new>

#include "detector/access_record.h"

namespace trapline {

// The last read of each thread that has one, in one block of memory: a header, the epochs side by
// side, and what else is known of the reads. Finding a thread's read, and finding that it is of the
// same epoch, which is what most reads come to, touches the first cache lines only.
//
// Handled by pointer, since the block moves when it grows. Not thread-safe.
template <class Allocator>
class ReaderList {
 public:
  ReaderList(const ReaderList&) = delete;
  ReaderList& operator=(const ReaderList&) = delete;

  // A list of two reads by different threads.
  static ReaderList* New(const AccessRecord& first, const AccessRecord& second) {
    ReaderList* list = NewOfCapacity(kFirstCapacity);
    list->Set(list->size_++, first);
    list->Set(list->size_++, second);
    return list;
  }
  static ReaderList* NewCopy(const ReaderList& other) { return NewCopy(other, other.capacity_); }
  static void Delete(ReaderList* list) { Allocator::Free(list, BytesFor(list->capacity_)); }

  // Whether one of the reads is of this epoch.
  bool Has(Epoch epoch) const {
    const Epoch* const epochs = this->epochs();
    for (std::uint32_t i = 0; i < size_; ++i) {
      if (epochs[i] == epoch) return true;
    }
    return false;
  }

  // `record` becomes the last read of its thread. Returns where the list is from now on.
  [[nodiscard]] ReaderList* Put(const AccessRecord& record) {
    for (std::uint32_t i = 0; i < size_; ++i) {
      if (epochs()[i].thread() != record.epoch.thread()) continue;
      Set(i, record);
      return this;
    }
    ReaderList* list = this;
    if (size_ == capacity_) {
      list = NewCopy(*this, 2 * capacity_);
      Delete(this);
    }
    list->Set(list->size_++, record);
    return list;
  }

  // Calls update(AccessRecord&) for the read of `thread`; returns whether there is one.
  template <class Change>
  bool Update(ThreadId thread, Change&& update) {
    for (std::uint32_t i = 0; i < size_; ++i) {
      if (epochs()[i].thread() != thread) continue;
      AccessRecord read{epochs()[i], positions()[i]};
      update(read);
      Set(i, read);
      return true;
    }
    return false;
  }

  // Calls visit(const AccessRecord&) for each read.
  template <class Visit>
  void ForEach(Visit&& visit) const {
    for (std::uint32_t i = 0; i < size_; ++i) visit(AccessRecord{epochs()[i], positions()[i]});
  }
  // Replaces each read by change(const AccessRecord&), one of the same epoch.
  template <class Change>
  void Transform(Change&& change) {
    for (std::uint32_t i = 0; i < size_; ++i) {
      Set(i, change(AccessRecord{epochs()[i], positions()[i]}));
    }
  }

 private:
  static constexpr std::uint32_t kFirstCapacity = 4;

  explicit ReaderList(std::uint32_t capacity) : capacity_(capacity) {}

  static std::uint64_t BytesFor(std::uint32_t capacity) {
    return sizeof(ReaderList) + capacity * (sizeof(AccessRecord));
  }
  static ReaderList* NewOfCapacity(std::uint32_t capacity) {
    return new (Allocator::Allocate(BytesFor(capacity))) ReaderList(capacity);
  }
  static ReaderList* NewCopy(const ReaderList& other, std::uint32_t capacity) {
    ReaderList* list = NewOfCapacity(capacity);
    for (; list->size_ < other.size_; ++list->size_) {
      list->epochs()[list->size_] = other.epochs()[list->size_];
      list->positions()[list->size_] = other.positions()[list->size_];
    }
    return list;
  }

  void Set(std::uint32_t i, const AccessRecord& record) {
    epochs()[i] = record.epoch;
    positions()[i] = record.position_place;
  }

  Epoch* epochs() { return reinterpret_cast<Epoch*>(this + 1); }
  const Epoch* epochs() const { return reinterpret_cast<const Epoch*>(this + 1); }
  std::uint64_t* positions() { return reinterpret_cast<std::uint64_t*>(epochs() + capacity_); }
  const std::uint64_t* positions() const {
    return reinterpret_cast<const std::uint64_t*>(epochs() + capacity_);
  }

  std::uint32_t size_ = 0;
  std::uint32_t capacity_;
};

}  // namespace trapline
