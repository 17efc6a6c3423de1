#include "detector/access_places.h"

#include <algorithm>
#include <utility>

namespace trapline {
namespace {

constexpr AccessPlace kNowhere{.thread = kMaxThreads};  // equal to none

}  // namespace

AccessPlaces::AccessPlaces(std::size_t limit)
    : limit_(limit),
      recent_(std::size_t{1} << kRecentBits, {kNowhere, 0}),
      chains_(1, kMaxThreads),
      table_(std::size_t{1} << kFirstBits) {
  for (PlaceId i = 0; i < kBlock; ++i) places_.Add(kNowhere);
}

PlaceId AccessPlaces::Find(AccessPlace place, ThreadId chain, std::uint64_t hash) {
  PlaceId id = 0;
  for (std::size_t at = hash >> shift_; table_[at] != 0; at = Next(at)) {
    const PlaceId known = IdIn(table_[at]);
    if (table_[at] != SlotFor(known, hash) || !(places_[known] == place)) continue;
    id = known;
    break;
  }
  if (id == 0) id = Add(place, chain, hash);
  if (id != 0) recent_[hash >> (64 - kRecentBits)] = {place, id};
  return id;
}

PlaceId AccessPlaces::Add(const AccessPlace& place, ThreadId chain, std::uint64_t hash) {
  if (chain >= free_.size()) free_.resize(std::size_t{chain} + 1);
  if (free_[chain].empty() && !AddBlock(chain)) return 0;
  const PlaceId id = free_[chain].back();
  free_[chain].pop_back();
  places_[id] = place;
  if (kSlotsPerPlace * (size_ + 1) > table_.size())
    Rebuild(64 - shift_ + 1, [](PlaceId) { return false; });
  Insert(id, hash);
  return id;
}

void AccessPlaces::Insert(PlaceId id, std::uint64_t hash) {
  std::size_t at = hash >> shift_;
  while (table_[at] != 0) at = Next(at);
  table_[at] = SlotFor(id, hash);
  ++size_;
}

template <class Drop>
void AccessPlaces::Rebuild(int bits, Drop&& drop) {
  const std::vector<Slot> old = std::exchange(table_, std::vector<Slot>(std::size_t{1} << bits));
  shift_ = 64 - bits;
  size_ = 0;
  for (const Slot slot : old) {
    if (slot == 0 || drop(IdIn(slot))) continue;
    Insert(IdIn(slot), HashOf(places_[IdIn(slot)]));
  }
}

bool AccessPlaces::AddBlock(ThreadId chain) {
  PlaceId first = static_cast<PlaceId>(places_.size());
  if (!free_blocks_.empty()) {
    first = free_blocks_.back();
    free_blocks_.pop_back();
  } else if (places_.size() < limit_) {
    for (PlaceId i = 0; i < kBlock; ++i) places_.Add();
    chains_.emplace_back();
  } else {
    return false;
  }
  chains_[first / kBlock] = chain;
  for (PlaceId i = kBlock; i-- > 0;) free_[chain].push_back(first + i);
  return true;
}

void AccessPlaces::Collect(const std::vector<bool>& used) {
  std::fill(recent_.begin(), recent_.end(), Recent{kNowhere, 0});
  std::vector<bool> is_kept(places_.size());
  for (const Slot slot : table_) is_kept[IdIn(slot)] = slot != 0 && used[IdIn(slot)];
  for (auto& of_chain : free_) of_chain = {};  // many have ended
  free_blocks_.clear();
  for (PlaceId first = static_cast<PlaceId>(places_.size()); (first -= kBlock) > 0;) {
    std::vector<PlaceId>& free = free_[chains_[first / kBlock]];
    const std::size_t free_before = free.size();
    for (PlaceId id = first + kBlock; id-- > first;) {
      if (!is_kept[id]) free.push_back(id);
    }
    if (free.size() - free_before < kBlock) continue;
    free.resize(free_before);
    free_blocks_.push_back(first);
  }
  Rebuild(64 - shift_, [&](PlaceId id) { return !is_kept[id]; });
  collect_at_ = std::max(kFirstCollection, 2 * (places_.size() - free_places()));
}

}  // namespace trapline
