// Equal values get the same small number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "detector/chunked_array.h"

namespace trapline {

// Number 0 is the value made without arguments. References are valid as long as the table.
template <class Value, class Hash>
class InternTable {
 public:
  InternTable() : slots_(64) { Add(Value()); }

  std::uint32_t Add(const Value& value) {
    const std::size_t at = SlotOf(value);
    if (slots_[at] != 0) return slots_[at] - 1;
    values_.Add(value);
    slots_[at] = static_cast<std::uint32_t>(values_.size());
    if (values_.size() * 2 > slots_.size()) Grow();
    return static_cast<std::uint32_t>(values_.size() - 1);
  }
  std::optional<std::uint32_t> Find(const Value& value) const {
    const std::uint32_t slot = slots_[SlotOf(value)];
    if (slot == 0) return std::nullopt;
    return slot - 1;
  }

  const Value& operator[](std::uint32_t number) const { return values_[number]; }
  std::size_t size() const { return values_.size(); }

 private:
  // Where it is, or would be.
  std::size_t SlotOf(const Value& value) const {
    std::size_t at = Hash{}(value) & (slots_.size() - 1);
    while (slots_[at] != 0 && !(values_[slots_[at] - 1] == value))
      at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void Grow() {
    std::vector<std::uint32_t> larger(slots_.size() * 2);
    for (const std::uint32_t slot : slots_) {
      if (slot == 0) continue;
      std::size_t at = Hash{}(values_[slot - 1]) & (larger.size() - 1);
      while (larger[at] != 0) at = (at + 1) & (larger.size() - 1);
      larger[at] = slot;
    }
    slots_ = std::move(larger);
  }

  std::vector<std::uint32_t> slots_;  // number + 1 by hash; 0: free; a power of two of them
  ChunkedArray<Value> values_;
};

}  // namespace trapline
