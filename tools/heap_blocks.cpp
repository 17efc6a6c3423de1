#include "tools/heap_blocks.h"

#include <algorithm>
#include <iterator>

namespace trapline {
namespace {

// Of who is not known.
constexpr std::uint32_t kNobody = 0;
constexpr std::uint32_t kMostAllocators = 1 << 20, kMostFreers = (1 << 19) - 1;

template <class Whos, class Who>
std::uint32_t NumberOf(Whos& whos, const Who& who, std::uint32_t most) {
  if (whos.size() < most) return whos.Add(who);
  return whos.Find(who).value_or(kNobody);
}

// An empty block has an address of its own.
constexpr std::uint64_t AtLeastOne(std::uint64_t size) { return size == 0 ? 1 : size; }

}  // namespace

void HeapBlocks::Allocate(std::uint64_t start, std::uint64_t size, std::uint64_t ip,
                          ThreadId thread) {
  ForgetThose(start, start + AtLeastOne(size));
  if (size > kPage) {
    large_[start] = {start, size, ip, thread, false, 0, 0};
    return;
  }
  Page& page = small_[start / kPage];
  constexpr std::size_t kStep = 8;  // doubling it would waste a quarter of all
  if (page.size() == page.capacity()) page.reserve(page.size() + page.size() / 4 + kStep);
  Small block{};
  block.offset = start % kPage;
  block.size = size & ((1 << 13) - 1);  // all of it
  block.allocated = NumberOf(allocators_, Who{ip, thread}, kMostAllocators) & (kMostAllocators - 1);
  page.insert(After(page, start % kPage), block);
}

std::optional<std::uint64_t> HeapBlocks::Free(std::uint64_t start, std::uint64_t ip,
                                              ThreadId thread) {
  if (Small* const small = FindSmall(start)) {
    small->freed = (1 + NumberOf(freers_, Who{ip, thread}, kMostFreers)) & kMostFreers;
    return std::uint64_t{small->size};
  }
  const auto large = large_.find(start);
  if (large == large_.end()) return std::nullopt;
  large->second.freed = true;
  large->second.free_ip = ip;
  large->second.freed_by = thread;
  return large->second.size;
}

void HeapBlocks::Forget(std::uint64_t start) {
  if (!large_.empty()) large_.erase(start);
  const Small* const small = FindSmall(start);
  if (small == nullptr) return;
  Page& page = small_[start / kPage];
  page.erase(page.begin() + (small - page.data()));
}

std::optional<HeapBlock> HeapBlocks::Find(std::uint64_t address, std::uint64_t size) const {
  const std::uint64_t last = address + size - 1;
  std::optional<HeapBlock> found = LastSmall(last);
  if (found && address < found->start + found->size) return found;
  const auto after = large_.upper_bound(last);
  if (after == large_.begin()) return std::nullopt;
  const HeapBlock& large = std::prev(after)->second;
  if (address >= large.start + large.size) return std::nullopt;
  return large;
}

// The first block that starts behind the offset.
HeapBlocks::Page::const_iterator HeapBlocks::After(const Page& page, std::uint64_t offset) {
  return std::upper_bound(
      page.begin(), page.end(), offset,
      [](std::uint64_t wanted, const Small& block) { return wanted < block.offset; });
}

HeapBlock HeapBlocks::Unpack(std::uint64_t page, const Small& block) const {
  const Who& allocator = allocators_[block.allocated];
  HeapBlock unpacked{.start = page * kPage + block.offset,
                     .size = block.size,
                     .ip = allocator.ip,
                     .thread = allocator.thread,
                     .freed = block.freed != 0};
  if (!unpacked.freed) return unpacked;
  const Who& freer = freers_[block.freed - 1];
  unpacked.free_ip = freer.ip;
  unpacked.freed_by = freer.thread;
  return unpacked;
}

HeapBlocks::Small* HeapBlocks::FindSmall(std::uint64_t start) {
  const auto known = small_.find(start / kPage);
  if (known == small_.end()) return nullptr;
  Page& page = known->second;
  const auto after = After(page, start % kPage);
  if (after == page.begin() || std::prev(after)->offset != start % kPage) return nullptr;
  return &page[static_cast<std::size_t>(after - page.begin()) - 1];
}

// The last one that starts at the address or less than a page before.
std::optional<HeapBlock> HeapBlocks::LastSmall(std::uint64_t address) const {
  const std::uint64_t number = address / kPage;
  if (const auto known = small_.find(number); known != small_.end()) {
    const Page& page = known->second;
    const auto after = After(page, address % kPage);
    if (after != page.begin()) return Unpack(number, *std::prev(after));
  }
  const auto before = small_.find(number - 1);
  if (number == 0 || before == small_.end() || before->second.empty()) return std::nullopt;
  return Unpack(number - 1, before->second.back());
}

// Those that have a byte in [start, end).
void HeapBlocks::ForgetThose(std::uint64_t start, std::uint64_t end) {
  auto large = large_.lower_bound(start);
  if (large != large_.begin()) {
    const auto before = std::prev(large);
    if (before->first + before->second.size > start) large = before;
  }
  while (large != large_.end() && large->first < end) large = large_.erase(large);
  const auto forget = [&](std::uint64_t number, Page& page) {
    const std::uint64_t base = number * kPage;
    if (end <= base) return;
    auto from = start < base ? page.cbegin() : After(page, start - base);
    if (from != page.cbegin()) {
      const Small& before = *std::prev(from);
      if (base + before.offset + AtLeastOne(before.size) > start) --from;
    }
    const auto to = After(page, end - base - 1);
    if (from < to) page.erase(from, to);
  };
  const std::uint64_t first = (start - std::min(start, kPage)) / kPage, last = (end - 1) / kPage;
  if (last - first >= small_.size()) {
    for (auto& [number, page] : small_) forget(number, page);
    return;
  }
  for (std::uint64_t number = first; number <= last; ++number) {
    if (const auto known = small_.find(number); known != small_.end())
      forget(number, known->second);
  }
}

}  // namespace trapline
