// Memory that is mapped at several places.
#include <algorithm>
#include <utility>

#include "hypervisor/address_space.h"

namespace trapline {

std::uint64_t AddressSpace::Canonical(std::uint64_t address) const {
  if (!has_aliases()) return address;
  const std::lock_guard lock(aliases_mutex_);
  const auto after = aliases_.upper_bound(address);
  if (after == aliases_.begin()) return address;
  const auto& [start, alias] = *std::prev(after);
  return address < alias.end ? alias.canonical + (address - start) : address;
}

void AddressSpace::ForEachCanonical(std::uint64_t address, std::uint64_t size,
                                    const std::function<void(const Range&)>& visit) const {
  if (!has_aliases()) {
    visit({address, address + size});
    return;
  }
  Range part{0, 0};
  for (std::uint64_t at = address; at < address + size;) {
    const std::uint64_t next = std::min(address + size, AlignDown(at, kPageSize) + kPageSize);
    const std::uint64_t canonical = Canonical(at);
    if (canonical != part.end) {
      if (part.end != part.start) visit(part);
      part = {canonical, canonical};
    }
    part.end += next - at;
    at = next;
  }
  if (part.end != part.start) visit(part);
}

// An object's pages are known by the lowest address at which they are mapped. When that changes,
// because a view comes below or the lowest one goes, what is known of them moves.
void AddressSpace::FindAliases() {
  struct Mapped {
    std::uint64_t offset, end, start;
  };
  std::map<std::uint64_t, std::vector<Mapped>> views;  // by object
  for (const auto& [start, region] : regions_) {
    if (region.object != 0)
      views[region.object].push_back({region.offset, region.offset + (region.end - start), start});
  }
  std::map<std::uint64_t, Alias> aliases;
  std::map<std::uint64_t, std::map<std::uint64_t, Alias>> homes;  // by object and offset
  std::vector<Range> viewed_twice;
  for (const auto& [object, of_object] : views) {
    for (std::size_t i = 0; i < of_object.size(); ++i) {
      const Mapped& view = of_object[i];
      for (std::uint64_t at = view.offset; at < view.end;) {
        // The first view that has the page at `at`, and how far it goes.
        std::uint64_t next = view.end;
        bool is_alias = false;
        for (std::size_t j = 0; j < i; ++j) {
          const Mapped& other = of_object[j];
          if (other.offset > at) next = std::min(next, other.offset);
          if (other.offset > at || other.end <= at) continue;
          next = std::min(next, other.end);
          const std::uint64_t start = view.start + (at - view.offset);
          const std::uint64_t canonical = other.start + (at - other.offset);
          aliases[start] = {start + (next - at), canonical};
          viewed_twice.push_back({start, start + (next - at)});
          viewed_twice.push_back({canonical, canonical + (next - at)});
          is_alias = true;
          break;
        }
        if (!is_alias) homes[object][at] = {next, view.start + (at - view.offset)};
        at = next;
      }
    }
  }
  std::vector<ViewMove> moves;
  for (const auto& [object, parts] : homes) {
    const auto before = homes_.find(object);
    if (before == homes_.end()) continue;
    for (const auto& [offset, home] : parts) {
      for (const auto& [old_offset, old_home] : before->second) {
        const std::uint64_t from = std::max(offset, old_offset);
        const std::uint64_t to = std::min(home.end, old_home.end);
        const std::uint64_t old_address = old_home.canonical + (from - old_offset);
        const std::uint64_t address = home.canonical + (from - offset);
        if (from < to && old_address != address) moves.push_back({old_address, address, to - from});
      }
    }
  }
  homes_ = std::move(homes);
  const auto publish = [&] {
    const std::lock_guard lock(aliases_mutex_);
    aliases_ = std::move(aliases);
    has_aliases_.store(!aliases_.empty(), std::memory_order_release);
  };
  if (states_ && rules_.on_views_changed) {
    rules_.on_views_changed(moves, publish);
  } else {
    publish();
  }
  if (!states_ || !OwnsPages()) return;
  for (const Range& view : viewed_twice) ShareView(view.start, view.end);
}

// Whoever has the pages to itself under these addresses has not under others.
void AddressSpace::ShareView(std::uint64_t start, std::uint64_t end) {
  std::vector<PageRun> runs;
  states_->ForEach(start, end, [&](const PageRun& run) {
    if (PageStates::HasOwner(run) || run.state == PageState::kReadOnly) runs.push_back(run);
  });
  for (const PageRun& run : runs) {
    states_->Share(run.start, run.end);
    if (run.state == PageState::kReadOnly) {
      Hide(run);
      continue;
    }
    Carrier* const owner = CarrierOf(run.owner);
    const bool unseen = owner == nullptr || Revoke(*owner, run);
    if (unseen && MayOrderUnseen()) rules_.on_ownership_lost(run.owner, {run}, 0);
  }
}

// The parts of [start, end) whose memory is mapped nowhere else.
std::vector<Range> AddressSpace::OnlyViews(std::uint64_t start, std::uint64_t end) {
  std::vector<Range> parts;
  for (std::uint64_t page = start; page < end; page += kPageSize) {
    const auto region = FindRegion(page);
    if (region != regions_.end() && region->second.object != 0) {
      const std::uint64_t offset = region->second.offset + (page - region->first);
      const bool elsewhere = std::any_of(regions_.begin(), regions_.end(), [&](const auto& other) {
        const auto& [at, view] = other;
        return view.object == region->second.object && view.offset <= offset &&
               offset < view.offset + (view.end - at) &&
               (at + (offset - view.offset) < start || at + (offset - view.offset) >= end);
      });
      if (elsewhere) continue;
    }
    if (!parts.empty() && parts.back().end == page) {
      parts.back().end += kPageSize;
    } else {
      parts.push_back({page, page + kPageSize});
    }
  }
  return parts;
}

}  // namespace trapline
