// The races a detector found, one for each pair of instructions.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "detector/detector.h"

namespace trapline {

// Not thread-safe.
class RaceLog {
 public:
  explicit RaceLog(bool all_races) : all_races_(all_races) {}

  // `first` and `second` race on [address, address+size). A race on several neighbouring cells,
  // reported in ascending order, is one race.
  void Report(const Access& first, const Access& second, std::uint64_t address, std::uint64_t size);

  // What the rule does not call races is none; what it takes for order is kept in ordering() until
  // ClearOrdering().
  void SetOrderingRule(OrderingRule rule) { rule_ = std::move(rule); }
  struct Ordering {
    Access first, second;
    Meeting meeting;  // Orders
  };
  std::span<const Ordering> ordering() const { return ordering_; }
  void ClearOrdering() { ordering_.clear(); }

  std::span<const Race> races() const { return races_; }
  // All races, those not kept included.
  std::uint64_t count() const { return count_; }

 private:
  struct InstructionPair {
    std::uint64_t a, b;     // a <= b
    std::uint64_t address;  // where both instructions are unknown
    friend bool operator==(const InstructionPair&, const InstructionPair&) = default;
  };
  struct Hash {
    std::size_t operator()(const InstructionPair& pair) const;
  };

  bool all_races_;
  OrderingRule rule_;  // may be empty
  std::vector<Ordering> ordering_;
  std::vector<Race> races_;
  std::unordered_set<InstructionPair, Hash> known_;
  std::uint64_t count_ = 0;
  Race last_;               // the last race reported, kept or not
  bool last_kept_ = false;  // whether it is races_.back()
};

}  // namespace trapline
