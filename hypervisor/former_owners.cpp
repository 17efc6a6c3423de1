#include "hypervisor/former_owners.h"

#include "hypervisor/observer.h"

namespace trapline {

std::uint64_t FormerOwners::NextKey(ThreadId owner) {
  const std::uint64_t number = owner % kOwners * kLosses + losses_++ % kLosses;
  versions_[number] = static_cast<std::uint32_t>(losses_);
  return kLossKeys | number;
}

bool FormerOwners::Learn(Known& known, std::uint64_t key) const {
  const std::uint64_t number = key - kLossKeys;
  known.versions_.resize(versions_.size());
  return std::exchange(known.versions_[number], versions_[number]) != versions_[number];
}

void FormerOwners::Add(ThreadId owner, std::uint64_t key, std::uint64_t start, std::uint64_t end) {
  Split(start);
  Split(end);
  // Gaps become entries, and then all get the key.
  std::uint64_t at = start;
  auto it = pages_.lower_bound(start);
  while (at < end) {
    if (it == pages_.end() || it->first != at) {
      const std::uint64_t gap_end = it == pages_.end() ? end : std::min(end, it->first);
      it = pages_.emplace_hint(it, at, Pages{gap_end, {}});
    }
    // An owner's later loss covers its earlier ones.
    std::erase_if(it->second.losses, [&](const auto& loss) { return loss.first == owner; });
    it->second.losses.emplace_back(owner, key);
    at = it->second.end;
    ++it;
  }
}

bool FormerOwners::Has(std::uint64_t address, ThreadId owner) const {
  const auto after = pages_.upper_bound(address);
  if (after == pages_.begin()) return false;
  const Pages& pages = std::prev(after)->second;
  return address < pages.end && std::any_of(pages.losses.begin(), pages.losses.end(),
                                            [&](const auto& loss) { return loss.first == owner; });
}

void FormerOwners::Forget(std::uint64_t start, std::uint64_t end) {
  Split(start);
  Split(end);
  pages_.erase(pages_.lower_bound(start), pages_.lower_bound(end));
}

void FormerOwners::Move(std::uint64_t from, std::uint64_t to, std::uint64_t length) {
  for (const std::uint64_t start : {from, to}) {
    Split(start);
    Split(start + length);
  }
  std::vector<std::pair<std::uint64_t, Pages>> moved;
  const auto first = pages_.lower_bound(from);
  const auto last = pages_.lower_bound(from + length);
  for (auto it = first; it != last; ++it) {
    it->second.end = it->second.end - from + to;
    moved.emplace_back(it->first - from + to, std::move(it->second));
  }
  pages_.erase(first, last);
  pages_.erase(pages_.lower_bound(to), pages_.lower_bound(to + length));
  for (auto& [start, pages] : moved) pages_.emplace(start, std::move(pages));
}

void FormerOwners::Split(std::uint64_t address) {
  const auto after = pages_.upper_bound(address);
  if (after == pages_.begin()) return;
  const auto it = std::prev(after);
  if (it->first == address || it->second.end <= address) return;
  pages_[address] = it->second;
  it->second.end = address;
}

}  // namespace trapline
