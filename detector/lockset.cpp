#include "detector/lockset.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace trapline {

LocksetTable::LocksetTable() { Intern({}); }

LocksetId LocksetTable::Add(LocksetId set, LockId lock) {
  std::vector<LockId> locks = *sets_[set];
  const auto place = std::lower_bound(locks.begin(), locks.end(), lock);
  if (place != locks.end() && *place == lock) return set;
  locks.insert(place, lock);
  return Intern(std::move(locks));
}

LocksetId LocksetTable::Remove(LocksetId set, LockId lock) {
  std::vector<LockId> locks = *sets_[set];
  const auto place = std::lower_bound(locks.begin(), locks.end(), lock);
  if (place == locks.end() || *place != lock) return set;
  locks.erase(place);
  return Intern(std::move(locks));
}

LocksetId LocksetTable::Intersect(LocksetId a, LocksetId b) {
  ++operations_;
  if (a == b) return a;
  if (a > b) std::swap(a, b);
  if (a == kEmptyLockset) return kEmptyLockset;
  const std::uint64_t key = std::uint64_t{a} << 32 | b;
  if (const auto found = intersections_.find(key); found != intersections_.end()) {
    return found->second;
  }
  ++computed_;
  std::vector<LockId> common;
  std::set_intersection(sets_[a]->begin(), sets_[a]->end(), sets_[b]->begin(), sets_[b]->end(),
                        std::back_inserter(common));
  const auto add_weaker = [&](LocksetId set, LocksetId other) {
    for (const LockId lock : *sets_[set]) {
      if (IsSharedSide(lock) && Has(other, lock & ~kSharedSide)) common.push_back(lock);
    }
  };
  add_weaker(a, b);
  add_weaker(b, a);
  std::sort(common.begin(), common.end());
  const LocksetId id = Intern(std::move(common));
  intersections_.emplace(key, id);
  return id;
}

bool LocksetTable::Disjoint(LocksetId a, LocksetId b) {
  for (const LockId lock : Locks(Intersect(a, b))) {
    const LockId exclusive = lock & ~kSharedSide;
    if (!IsSharedSide(lock) || Has(a, exclusive) || Has(b, exclusive)) return false;
  }
  return true;
}

bool LocksetTable::Has(LocksetId set, LockId lock) const {
  return std::binary_search(sets_[set]->begin(), sets_[set]->end(), lock);
}

LocksetId LocksetTable::Intern(std::vector<LockId> locks) {
  const auto [place, is_new] = ids_.emplace(std::move(locks), static_cast<LocksetId>(sets_.size()));
  if (is_new) sets_.push_back(&place->first);
  return place->second;
}

void HeldLocks::Apply(const Event& event) {
  if (!IsOfLock(event.kind)) return;
  ThreadState& t = StateOf(event.thread);
  Held& held = t.held[event.address];
  std::uint32_t& count = IsOfSharedLock(event.kind) ? held.shared : held.exclusive;
  if (!IsReleaseOfLock(event.kind)) {
    ++count;
  } else if (count > 0) {
    --count;
  }
  t.exclusive = held.exclusive > 0 ? table_->Add(t.exclusive, event.address)
                                   : table_->Remove(t.exclusive, event.address);
  const LockId shared_side = SharedSideOf(event.address);
  t.sides = held.exclusive > 0 ? table_->Add(t.sides, event.address)
                               : table_->Remove(t.sides, event.address);
  t.sides = held.exclusive == 0 && held.shared > 0 ? table_->Add(t.sides, shared_side)
                                                   : table_->Remove(t.sides, shared_side);
  if (held.exclusive + held.shared > 0) {
    t.any = table_->Add(t.any, event.address);
  } else {
    t.any = table_->Remove(t.any, event.address);
    t.held.erase(event.address);
  }
}

}  // namespace trapline
