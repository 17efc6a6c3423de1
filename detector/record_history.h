// Past accesses to one cell as records, at most one for each thread, in few bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "detector/access_record.h"
#include "detector/block_pool.h"

namespace trapline {

// In the order in which the threads came, but for those that take the room of a forgotten one. One
// record is in the object
// itself, more are in a block of memory of its own. threads(AccessRecord) tells a record's thread,
// and of an empty one none. The pool must outlive the object. Not thread-safe.
class RecordHistory {
 public:
  RecordHistory() = default;
  RecordHistory(const RecordHistory& other) : only_(other.only_) {
    if (!other.InBlock()) return;
    const Block from = other.block();
    const Block copy = {static_cast<AccessRecord*>(
                            BlockPool::AllocateBeside(from.records, BytesFor(from.capacity))),
                        from.capacity};
    for (std::uint32_t i = 0; i < from.capacity; ++i) copy.records[i] = from.records[i];
    SetBlock(copy);
  }
  RecordHistory& operator=(const RecordHistory& other) {
    if (this != &other) {
      RecordHistory copy(other);
      std::swap(only_, copy.only_);
    }
    return *this;
  }
  ~RecordHistory() {
    if (InBlock()) BlockPool::Free(block().records, BytesFor(block().capacity));
  }

  // Makes `record`, which is not empty, the last access of its thread. Throws std::bad_alloc.
  template <class Threads>
  void Put(BlockPool& memory, const AccessRecord& record, Threads&& threads) {
    const ThreadId thread = threads(record);
    Block known = block();
    AccessRecord* room = nullptr;
    for (std::uint32_t i = 0; i < known.capacity; ++i) {
      AccessRecord& at = known.records[i];
      if (at.empty()) {
        if (room == nullptr) room = &at;
      } else if (threads(at) == thread) {
        at = record;
        return;
      }
    }
    if (room == nullptr) {
      const Block larger = {
          static_cast<AccessRecord*>(memory.Allocate(BytesFor(2 * known.capacity))),
          2 * known.capacity};
      for (std::uint32_t i = 0; i < larger.capacity; ++i)
        larger.records[i] = i < known.capacity ? known.records[i] : AccessRecord();
      room = &larger.records[known.capacity];
      if (InBlock()) BlockPool::Free(known.records, BytesFor(known.capacity));
      SetBlock(larger);
    }
    *room = record;
  }

  // A hint that they are looked at soon.
  void Prefetch() const {
    if (InBlock()) __builtin_prefetch(block().records, 1);
  }

  // Calls visit(const AccessRecord&) for each one.
  template <class Visit>
  void ForEach(Visit&& visit) const {
    const Block known = block();
    for (std::uint32_t i = 0; i < known.capacity; ++i) {
      if (!known.records[i].empty()) visit(std::as_const(known.records[i]));
    }
  }
  // Replaces each one by change(const AccessRecord&), one of the same thread or empty.
  template <class Change>
  void Transform(Change&& change) {
    const Block known = block();
    for (std::uint32_t i = 0; i < known.capacity; ++i) {
      if (!known.records[i].empty()) known.records[i] = change(std::as_const(known.records[i]));
    }
  }

 private:
  static constexpr int kPointerBits = 56;

  struct Block {
    AccessRecord* records;   // the unused ones are empty
    std::uint32_t capacity;  // a power of two
  };

  static std::size_t BytesFor(std::uint32_t capacity) { return capacity * sizeof(AccessRecord); }
  bool InBlock() const { return only_.IsOther(); }
  // That, or this object as a block of one.
  Block block() const {
    if (!InBlock()) return {const_cast<AccessRecord*>(&only_), 1};
    const std::uint64_t bits = only_.other();
    return {reinterpret_cast<AccessRecord*>(bits & ((std::uint64_t{1} << kPointerBits) - 1)),
            std::uint32_t{1} << (bits >> kPointerBits)};
  }
  void SetBlock(const Block& block) {
    only_ = AccessRecord::Other(static_cast<std::uint64_t>(std::countr_zero(block.capacity))
                                    << kPointerBits |
                                reinterpret_cast<std::uint64_t>(block.records));
  }

  AccessRecord only_;  // or a block
};
static_assert(sizeof(RecordHistory) == 8);

}  // namespace trapline
