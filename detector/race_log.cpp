#include "detector/race_log.h"

#include <algorithm>

#include "detector/hash.h"

namespace trapline {

std::string_view RaceKindName(const Race& race) {
  const bool first_writes = IsWrite(race.first.kind);
  const bool second_writes = IsWrite(race.second.kind);
  if (first_writes && second_writes) return "write-write race";
  return first_writes ? "write-read race" : "read-write race";
}

std::size_t RaceLog::Hash::operator()(const InstructionPair& pair) const {
  return HashOf(pair.a, pair.b, pair.address);
}

void RaceLog::Report(const Access& first, const Access& second, std::uint64_t address,
                     std::uint64_t size) {
  if (rule_) {
    if (const Meeting meeting = rule_(first, second); meeting != Meeting::kRace) {
      if (Orders(meeting)) ordering_.push_back({first, second, meeting});
      return;
    }
  }
  if (count_ > 0 && last_.first.index == first.index && last_.second.index == second.index &&
      last_.second.address == second.address && last_.address + last_.size == address) {
    last_.size += size;
    if (last_kept_) races_.back().size += size;
    return;
  }
  ++count_;
  last_ = {first, second, address, size};
  const auto [a, b] = std::minmax(first.ip, second.ip);
  last_kept_ = all_races_ || known_.insert({a, b, b == 0 ? address : 0}).second;
  if (last_kept_) races_.push_back(last_);
}

}  // namespace trapline
