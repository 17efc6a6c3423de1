// Which memory is the program's.
#include "hypervisor/address_space.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "hypervisor/client_requests.h"
#include "hypervisor/host_mappings.h"

namespace trapline {
namespace {

// Native kernels keep this much free below a growing stack (stack_guard_gap).
constexpr std::uint64_t kStackGuardGap = 256 * kPageSize;

bool Reserve(std::uint64_t start, std::uint64_t end) {
  void* got = mmap(Pointer(start), end - start, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == MAP_FAILED) return false;
  if (got != Pointer(start)) {  // kernels before 4.17 take the address as a hint
    munmap(got, end - start);
    return false;
  }
  return true;
}

}  // namespace

AddressSpace::AddressSpace(Machine& machine, const MemoryLimits& limits, bool count_page_use)
    : machine_(machine), count_page_use_(count_page_use), limits_(limits) {
  if (!Reserve(TRAPLINE_AGENT_BASE, TRAPLINE_AGENT_END)) {
    throw KvmError(
        EEXIST,
        "the address range of the in-guest code (0x7fe00000-0x7fff0000) is taken; a monitor "
        "cannot run under another one");
  }
}

bool AddressSpace::IsFree(std::uint64_t start, std::uint64_t end) {
  if (!Reserve(start, end)) return false;
  munmap(Pointer(start), end - start);
  return true;
}

AddressSpace::RegionMap::iterator AddressSpace::FindRegion(std::uint64_t address) {
  auto it = regions_.upper_bound(address);
  if (it == regions_.begin()) return regions_.end();
  --it;
  return address < it->second.end ? it : regions_.end();
}

std::optional<Region> AddressSpace::Find(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  auto it = regions_.upper_bound(address);
  if (it == regions_.begin()) return std::nullopt;
  --it;
  if (address >= it->second.end) return std::nullopt;
  return it->second;
}

std::map<std::uint64_t, Region> AddressSpace::Regions() const {
  const std::lock_guard lock(mutex_);
  return regions_;
}

std::vector<Range> AddressSpace::SharedRegions() const {
  const std::lock_guard lock(mutex_);
  std::vector<Range> shared;
  for (const auto& [start, region] : regions_) {
    if (region.shared) shared.push_back({start, region.end});
  }
  return shared;
}

std::vector<Range> AddressSpace::CoveredParts(std::uint64_t start, std::uint64_t end) const {
  std::vector<Range> parts;
  ForEachRegion(start, end, [&](const Range& part, std::uint64_t, const Region&) {
    if (!parts.empty() && parts.back().end == part.start) {
      parts.back().end = part.end;
    } else {
      parts.push_back(part);
    }
  });
  return parts;
}

// The parts of the range whose host mapping the program may change.
std::vector<Range> AddressSpace::OwnParts(std::uint64_t start, std::uint64_t end) const {
  std::vector<Range> parts;
  ForEachRegion(start, end, [&](const Range& part, std::uint64_t, const Region& region) {
    if (!region.borrowed) parts.push_back(part);
  });
  return parts;
}

// Whether to look for requests in a file mapped like this.
bool AddressSpace::HasClientRequests(const Region& region) const {
  return states_ && (region.protection & PROT_EXEC) != 0 && !region.shared && !region.borrowed &&
         !region.untracked_code;
}

bool AddressSpace::Borrowed(std::uint64_t start, std::uint64_t end) const {
  bool borrowed = false;
  ForEachRegion(start, end, [&](const Range&, std::uint64_t, const Region& region) {
    borrowed = borrowed || region.borrowed;
  });
  return borrowed;
}

bool AddressSpace::Covered(std::uint64_t start, std::uint64_t end) const {
  const auto parts = CoveredParts(start, end);
  return parts.size() == 1 && parts[0].start == start && parts[0].end == end;
}

// Reserves every part of the range that is not the program's. False, and nothing reserved, when the
// monitor has something there.
bool AddressSpace::ClaimGaps(std::uint64_t start, std::uint64_t end, std::vector<Range>& claimed) {
  std::uint64_t at = start;
  auto parts = CoveredParts(start, end);
  parts.push_back({end, end});
  for (const Range& part : parts) {
    if (at < part.start) {
      if (!Reserve(at, part.start)) {
        for (const Range& range : claimed) munmap(Pointer(range.start), range.end - range.start);
        claimed.clear();
        return false;
      }
      claimed.push_back({at, part.start});
    }
    at = part.end;
  }
  return true;
}

void AddressSpace::Split(std::uint64_t address) {
  auto it = FindRegion(address);
  if (it == regions_.end() || it->first == address) return;
  Region upper = it->second;
  it->second.end = address;
  upper.offset += address - it->first;
  upper.grows_down = false;
  regions_[address] = upper;
}

void AddressSpace::Remove(std::uint64_t start, std::uint64_t end) {
  NoteChangedCode(start, end);
  Split(start);
  Split(end);
  regions_.erase(regions_.lower_bound(start), regions_.lower_bound(end));
  counting_parts_.erase(counting_parts_.lower_bound(start), counting_parts_.lower_bound(end));
  if (watches_aliases_) FindAliases();
}

void AddressSpace::Insert(std::uint64_t start, const Region& region) {
  Remove(start, region.end);
  if ((region.protection & PROT_EXEC) != 0) ++new_code_;
  ClearCollisions(start, region);
  auto it = regions_.insert_or_assign(start, region).first;
  // Neighbours of the same kind become one, so that runs and large pages see whole mappings.
  const auto same = [](const Region& a, const Region& b) {
    return a.protection == b.protection && a.shared == b.shared && !a.grows_down && !b.grows_down &&
           a.borrowed == b.borrowed && a.untracked_code == b.untracked_code &&
           a.served == b.served && a.object == 0 && b.object == 0;
  };
  if (it != regions_.begin()) {
    auto before = std::prev(it);
    if (before->second.end == start && same(before->second, it->second)) {
      before->second.end = it->second.end;
      regions_.erase(it);
      it = before;
    }
  }
  auto after = std::next(it);
  if (after != regions_.end() && it->second.end == after->first &&
      same(it->second, after->second)) {
    it->second.end = after->second.end;
    regions_.erase(after);
  }
  if (watches_aliases_) FindAliases();
}

void AddressSpace::Adopt(std::uint64_t start, std::uint64_t end, const Region& region) {
  const std::lock_guard lock(mutex_);
  Region adopted = region;
  adopted.end = end;
  Insert(start, adopted);
  if (HasClientRequests(adopted)) ArmClientRequests(start, end, HostProtection(region.protection));
}

// Before the entries of regions change.
void AddressSpace::NoteChangedCode(std::uint64_t start, std::uint64_t end) {
  ForEachRegion(start, end, [&](const Range& part, std::uint64_t, const Region& region) {
    if ((region.protection & PROT_EXEC) == 0) return;
    ++code_version_;
    if (!states_) return;
    changed_code_.push_back(part);
    code_changed_ = true;
  });
}

void AddressSpace::OnCodeWritten(std::uint64_t start, std::uint64_t end) {
  const std::lock_guard lock(mutex_);
  if (start < end && end <= kUserAddressEnd) NoteChangedCode(start, end);
}

std::vector<Range> AddressSpace::TakeChangedCode() {
  if (!code_changed_) return {};
  const std::lock_guard lock(mutex_);
  code_changed_ = false;
  return std::exchange(changed_code_, {});
}

bool AddressSpace::TrackedCodeAt(std::uint64_t address) {
  const auto region = FindRegion(address);
  if (region == regions_.end()) return false;
  return region->second.IsTrackedCode() || !CountingPartsIn(address, address + 1).empty();
}

std::vector<Range> AddressSpace::CountingPartsIn(std::uint64_t start, std::uint64_t end) const {
  std::vector<Range> parts;
  auto part = counting_parts_.upper_bound(start);
  if (part != counting_parts_.begin() && std::prev(part)->second > start) --part;
  for (; part != counting_parts_.end() && part->first < end; ++part)
    parts.push_back({std::max(part->first, start), std::min(part->second, end)});
  return parts;
}

std::vector<Range> AddressSpace::CountingParts(std::uint64_t start, std::uint64_t end) {
  const std::lock_guard lock(mutex_);
  return CountingPartsIn(start, end);
}

// A file's code is at [start, end) now.
void AddressSpace::NoteCode(std::uint64_t start, const Region& region, const std::string& path,
                            std::uint64_t offset) {
  for (const Range& part :
       rules_.on_code_mapped(path, {start, region.end}, offset, region.IsTrackedCode()))
    counting_parts_[part.start] = part.end;
}

void AddressSpace::SetUntrackedCode(std::uint64_t start, std::uint64_t end) {
  const std::lock_guard lock(mutex_);
  Split(start);
  Split(end);
  for (auto it = regions_.lower_bound(start); it != regions_.end() && it->first < end; ++it)
    it->second.untracked_code = true;
}

bool AddressSpace::IsTrackedCode(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  return TrackedCodeAt(address);
}

// --- growing stacks

bool AddressSpace::TryGrow(std::uint64_t address) {
  auto it = regions_.upper_bound(address);
  if (it == regions_.end() || !it->second.grows_down) return false;
  const std::uint64_t start = AlignDown(address, kPageSize);
  Region grown = it->second;
  rlimit most{};
  getrlimit(RLIMIT_STACK, &most);
  if (start < grown.growth_limit || grown.end - start > most.rlim_cur) return false;
  if (it != regions_.begin()) {
    const auto below = std::prev(it);
    if (below->second.protection != PROT_NONE && below->second.end + kStackGuardGap > start)
      return false;
  }
  const std::uint64_t old_start = it->first;
  if (grown.growth_reserved) {
    if (mprotect(Pointer(start), old_start - start, grown.protection) != 0) return false;
  } else {
    void* got = mmap(Pointer(start), old_start - start, grown.protection,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != Pointer(start)) return false;
  }
  regions_.erase(it);
  ClearCollisions(start, grown);
  regions_[start] = grown;
  return true;
}

std::uint64_t AddressSpace::CreateStack(std::uint64_t limit, std::uint64_t initial,
                                        bool executable) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t size = AlignUp(limit, kPageSize) + kStackGuardGap;
  void* area = mmap(nullptr, size, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (area == MAP_FAILED) return 0;
  const auto bottom = reinterpret_cast<std::uint64_t>(area);
  stack_top_ = bottom + size;
  constexpr std::uint64_t kUsual = 33 * kPageSize;  // what execve leaves natively
  initial = std::max(kUsual, AlignUp(initial, kPageSize));
  const std::uint64_t start = stack_top_ - std::min(initial, size - kStackGuardGap);
  const int protection = PROT_READ | PROT_WRITE | (executable ? PROT_EXEC : 0);
  if (mprotect(Pointer(start), stack_top_ - start, protection) != 0) return 0;
  Region region;
  region.end = stack_top_;
  region.protection = protection;
  region.grows_down = true;
  region.growth_limit = bottom + kStackGuardGap;
  region.growth_reserved = true;
  Remove(start, stack_top_);
  regions_[start] = region;
  return stack_top_;
}

Range AddressSpace::stack() const {
  const std::lock_guard lock(mutex_);
  auto it = regions_.upper_bound(stack_top_ - 1);
  if (it == regions_.begin()) return {0, 0};
  --it;
  return {it->first, it->second.end};
}

}  // namespace trapline
