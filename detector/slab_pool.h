// Memory for many objects of one type.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "detector/slab.h"

namespace trapline {

// Objects in few large blocks: what is made at about the same time lies side by side, and on huge
// pages where the system gives them, since shadow memory is accessed at random and would wait for
// the page tables as long as for itself. Memory is reused, but goes back to the system only with
// the pool. Not thread-safe.
template <class T>
class SlabPool {
 public:
  SlabPool() = default;
  SlabPool(const SlabPool&) = delete;
  SlabPool& operator=(const SlabPool&) = delete;
  // Destroys no object: they must have been deleted before.
  ~SlabPool() = default;

  // An object made of `arguments`. Throws std::bad_alloc.
  template <class... Arguments>
  T* New(Arguments&&... arguments) {
    Slot* slot = free_;
    if (slot != nullptr) {
      free_ = slot->next;
    } else {
      if (fresh_ == end_) AddSlab();
      slot = fresh_++;
    }
    ++size_;
    return new (slot->object) T(std::forward<Arguments>(arguments)...);
  }

  void Delete(T* object) {
    object->~T();
    --size_;
    auto* const slot = reinterpret_cast<Slot*>(object);
    slot->next = free_;
    free_ = slot;
  }

  // Objects that there are.
  std::size_t size() const { return size_; }

 private:
  union Slot {
    Slot* next;  // of the free ones
    alignas(T) std::byte object[sizeof(T)];
  };

  static constexpr std::size_t kFirstSlots = 16;

  // Slabs grow, so that little is taken for little.
  void AddSlab() {
    const bool large = next_bytes_ >= kHugePage;
    const std::size_t bytes = large ? kHugePage : next_bytes_;
    slabs_.push_back(AllocateSlab(large ? kHugePage : alignof(Slot), bytes));
    fresh_ = static_cast<Slot*>(slabs_.back().get());
    end_ = fresh_ + bytes / sizeof(Slot);
    next_bytes_ = std::min(2 * bytes, kHugePage);
  }

  std::size_t size_ = 0;
  Slot* free_ = nullptr;
  Slot* fresh_ = nullptr;  // [fresh_, end_): never used
  Slot* end_ = nullptr;
  std::size_t next_bytes_ = kFirstSlots * sizeof(Slot);
  std::vector<Slab> slabs_;
};

}  // namespace trapline
