// Equal values get the same small number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace trapline {

// Number 0 is the value made without arguments. References stay valid as long as the table.
template <class Value, class Hash>
class InternTable {
 public:
  InternTable() { Add(Value()); }

  std::uint32_t Add(Value value) {
    const auto [at, is_new] =
        numbers_.try_emplace(std::move(value), static_cast<std::uint32_t>(values_.size()));
    if (is_new) values_.push_back(&at->first);
    return at->second;
  }

  const Value& operator[](std::uint32_t number) const { return *values_[number]; }
  std::size_t size() const { return values_.size(); }

 private:
  std::unordered_map<Value, std::uint32_t, Hash> numbers_;
  std::vector<const Value*> values_;
};

}  // namespace trapline
