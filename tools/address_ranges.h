// A set of addresses as disjoint ranges.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace trapline {

// Ranges are [start, end); empty ones are ignored. Not thread-safe.
class AddressRanges {
 public:
  bool empty() const { return ends_.empty(); }

  // `end` may be where another range starts: both become one.
  void Add(std::uint64_t start, std::uint64_t end) { Set(start, end, true); }
  void Remove(std::uint64_t start, std::uint64_t end) { Set(start, end, false); }

  bool Contains(std::uint64_t start, std::uint64_t size) const {
    const auto it = ends_.upper_bound(start);
    return it != ends_.begin() && start + size <= std::prev(it)->second;
  }

 private:
  void Set(std::uint64_t start, std::uint64_t end, bool contained) {
    if (start >= end) return;
    auto it = ends_.lower_bound(start);
    if (it != ends_.begin() && std::prev(it)->second >= start) --it;
    // What is in the way is cut off or, if the range joins them, becomes part of it.
    std::uint64_t first = start, last = end;
    while (it != ends_.end() && it->first <= end) {
      const auto [from, to] = *it;
      it = ends_.erase(it);
      if (contained) {
        first = std::min(first, from);
        last = std::max(last, to);
        continue;
      }
      if (from < start) ends_[from] = start;
      if (to > end) ends_[end] = to;
      if (to > end) break;
    }
    if (contained) ends_[first] = last;
  }

  std::map<std::uint64_t, std::uint64_t> ends_;  // by start; disjoint
};

}  // namespace trapline
