#include "detector/access_places.h"

#include <algorithm>

namespace trapline {

PlaceId AccessPlaces::Find(const AccessPlace& place) {
  if (const auto found = ids_.find(place); found != ids_.end()) return found->second;
  PlaceId id = 0;
  if (!free_.empty()) {
    id = free_.back();
    free_.pop_back();
    places_[id] = place;
  } else if (ids_.size() < kMaxPlaces) {
    id = static_cast<PlaceId>(places_.size());
    places_.push_back(place);
  } else {
    return 0;
  }
  ids_.emplace(place, id);
  return id;
}

void AccessPlaces::Collect(const std::vector<bool>& used) {
  free_.clear();
  for (PlaceId id = static_cast<PlaceId>(places_.size() - 1); id > 0; --id) {
    if (used[id]) continue;
    const auto found = ids_.find(places_[id]);
    if (found != ids_.end() && found->second == id) ids_.erase(found);
    free_.push_back(id);
  }
  std::fill(recent_.begin(), recent_.end(), Recent{});
  collect_at_ = std::max(kFirstCollection, 2 * ids_.size());
}

}  // namespace trapline
