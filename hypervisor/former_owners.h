// Whose pages were private, and are no longer.
//
// What an owner did on its private pages was not seen, releases included. Whoever reads a word
// there atomically later may have read one: it is ordered after all the owner did until it lost the
// page. This can hide a race, never invent one.
//
// Addresses are canonical (AddressSpace::Canonical). Guarded by Tracking's mutex. Under
// SharingPolicy::kExact it stays empty.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "detector/event.h"

namespace trapline {

class FormerOwners {
 public:
  // What a thread comes after of what is known by keys.
  class Known {
   private:
    friend class FormerOwners;
    std::vector<std::uint32_t> versions_;  // by key
  };

  // The key (kLossKeys) for what `owner` has done until it loses pages now.
  std::uint64_t NextKey(ThreadId owner);
  // `owner` has lost [start, end): what it did until then is known by `key`.
  void Add(ThreadId owner, std::uint64_t key, std::uint64_t start, std::uint64_t end);

  // Whether anybody has ever lost pages. Thread-safe.
  bool existed() const { return losses_ != 0; }
  bool empty() const { return pages_.empty(); }
  bool Has(std::uint64_t address, ThreadId owner) const;
  // Whether the key has stood for more since the thread whose `known` this is learnt of it last,
  // which it does now.
  bool Learn(Known& known, std::uint64_t key) const;
  // Calls visit(owner, key) for each that [start, end) had, for some of them more than once.
  template <class Visit>
  void ForEach(std::uint64_t start, std::uint64_t end, Visit&& visit) const {
    if (pages_.empty()) return;
    auto it = pages_.upper_bound(start);
    if (it != pages_.begin() && std::prev(it)->second.end > start) --it;
    for (; it != pages_.end() && it->first < end; ++it) {
      for (const auto& [owner, key] : it->second.losses) visit(owner, key);
    }
  }

  // [start, end) is fresh memory.
  void Forget(std::uint64_t start, std::uint64_t end);
  // What was at [from, from + length) is now at `to`, and nothing else is.
  void Move(std::uint64_t from, std::uint64_t to, std::uint64_t length);
  // Nobody has lost anything.
  void Clear() { pages_.clear(); }

 private:
  struct Pages {
    std::uint64_t end = 0;
    std::vector<std::pair<ThreadId, std::uint64_t>> losses;  // owner, key of its clock
  };

  // An entry ends at the address, and another one starts there, if one went across it.
  void Split(std::uint64_t address);

  // Clocks are never given back, so keys are few; sharing one orders more, which is allowed.
  static constexpr std::uint64_t kOwners = 64, kLosses = 16;

  std::map<std::uint64_t, Pages> pages_;                     // by start
  std::atomic<std::uint64_t> losses_ = 0;                    // keys given out for them
  std::array<std::uint32_t, kOwners * kLosses> versions_{};  // by key: losses_ when it was
};

}  // namespace trapline
