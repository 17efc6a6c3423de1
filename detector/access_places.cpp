#include "detector/access_places.h"

#include <algorithm>
#include <iterator>

namespace trapline {
namespace {

constexpr AccessPlace kNowhere{.thread = kMaxThreads};  // equal to none

}  // namespace

AccessPlaces::AccessPlaces(std::size_t limit)
    : limit_(limit),
      recent_(std::size_t{1} << kRecentBits, {kNowhere, 0}),
      places_(kBlock),
      threads_(1, kMaxThreads),
      table_(std::size_t{1} << kFirstBits) {
  places_[0] = kNowhere;
}

PlaceId AccessPlaces::Find(AccessPlace place, std::uint64_t hash) {
  std::size_t at = hash >> shift_;
  while (table_[at] != 0 && !(places_[table_[at]] == place)) at = Next(at);
  const PlaceId id = table_[at] != 0 ? table_[at] : Add(place);
  if (id != 0) recent_[hash >> (64 - kRecentBits)] = {place, id};
  return id;
}

PlaceId AccessPlaces::Add(const AccessPlace& place) {
  if (place.thread >= free_.size()) free_.resize(std::size_t{place.thread} + 1);
  if (free_[place.thread].empty() && !AddBlock(place.thread)) return 0;
  const PlaceId id = free_[place.thread].back();
  free_[place.thread].pop_back();
  places_[id] = place;
  if (kSlotsPerPlace * (size_ + 1) > table_.size()) {
    std::vector<PlaceId> ids;
    std::copy_if(table_.begin(), table_.end(), std::back_inserter(ids),
                 [](PlaceId known) { return known != 0; });
    Rebuild(64 - shift_ + 1, ids);
  }
  ++size_;
  Insert(id);
  return id;
}

void AccessPlaces::Insert(PlaceId id) {
  std::size_t at = HomeOf(places_[id]);
  while (table_[at] != 0) at = Next(at);
  table_[at] = id;
}

void AccessPlaces::Rebuild(int bits, const std::vector<PlaceId>& ids) {
  table_.assign(std::size_t{1} << bits, 0);
  shift_ = 64 - bits;
  size_ = ids.size();
  for (const PlaceId id : ids) Insert(id);
}

bool AccessPlaces::AddBlock(ThreadId thread) {
  PlaceId first = static_cast<PlaceId>(places_.size());
  if (!free_blocks_.empty()) {
    first = free_blocks_.back();
    free_blocks_.pop_back();
  } else if (places_.size() < limit_) {
    places_.resize(places_.size() + kBlock);
    threads_.emplace_back();
  } else {
    return false;
  }
  threads_[first / kBlock] = thread;
  for (PlaceId i = kBlock; i-- > 0;) free_[thread].push_back(first + i);
  return true;
}

void AccessPlaces::Collect(const std::vector<bool>& used) {
  std::fill(recent_.begin(), recent_.end(), Recent{kNowhere, 0});
  std::vector<PlaceId> kept;
  std::vector<bool> is_kept(places_.size());
  for (const PlaceId id : table_) {
    if (id == 0 || !used[id]) continue;
    kept.push_back(id);
    is_kept[id] = true;
  }
  for (auto& of_thread : free_) of_thread = {};  // many have ended
  free_blocks_.clear();
  for (PlaceId first = static_cast<PlaceId>(places_.size()); (first -= kBlock) > 0;) {
    std::vector<PlaceId>& free = free_[threads_[first / kBlock]];
    const std::size_t free_before = free.size();
    for (PlaceId id = first + kBlock; id-- > first;) {
      if (!is_kept[id]) free.push_back(id);
    }
    if (free.size() - free_before < kBlock) continue;
    free.resize(free_before);
    free_blocks_.push_back(first);
  }
  Rebuild(64 - shift_, kept);
  collect_at_ = std::max(kFirstCollection, 2 * (places_.size() - free_places()));
}

}  // namespace trapline
