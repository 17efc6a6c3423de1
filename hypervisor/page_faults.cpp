// What page tables hold of the program's memory, and how it gets there: by page faults.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "hypervisor/address_space.h"
#include "hypervisor/host_mappings.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // since Linux 6.1
#endif

namespace trapline {
namespace {

constexpr unsigned kSeveral = ~0u;

// Whether the host has the page: what is wrong if it has not.
std::optional<FaultVerdict> Probe(std::uint64_t page, bool write) {
  if (madvise(Pointer(page), kPageSize, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0)
    return std::nullopt;
  if (errno == EHWPOISON) return FaultVerdict::kMemoryFailure;
  if (errno == EFAULT) return FaultVerdict::kBusError;
  if (errno == ENOMEM) return FaultVerdict::kNotMapped;  // gone behind our back: MADV_DONTFORK
  return std::nullopt;
}

// visit(const Range&) for those pages of `part` that the host has. (What lies there may have gone
// in part behind our back: MADV_DONTFORK.)
template <class Visit>
void ForEachResident(const Range& part, Visit&& visit) {
  constexpr std::size_t kPages = kLargePageSize / kPageSize;
  std::array<unsigned char, kPages> resident{};
  for (std::uint64_t start = part.start; start < part.end; start += kLargePageSize) {
    const std::uint64_t size = std::min(part.end - start, kLargePageSize);
    const bool known = mincore(Pointer(start), size, resident.data()) == 0;
    for (std::uint64_t page = 0; page < size / kPageSize; ++page) {
      const std::uint64_t at = start + page * kPageSize;
      if (!known && mincore(Pointer(at), kPageSize, &resident[page]) != 0) continue;
      if ((resident[page] & 1) != 0) visit(Range{at, at + kPageSize});
    }
  }
}

}  // namespace

void AddressSpace::ClearEntries(std::uint64_t start, std::uint64_t end) {
  UsedPages used;
  machine_.ForEachCarrier([&](Carrier& carrier) {
    if (count_page_use_) HarvestAccess(carrier, start, end);
    used.Add(ClearViews(carrier, start, end));
  });
  // Not every system call that comes next makes KVM notice (mremap in place, mprotect to what it
  // was), and later nobody would know that these pages had been used.
  DropTranslations(used);
}

// Makes [start, end) absent in all views of a thread. Returns which pages were used in the closed
// one.
UsedPages AddressSpace::ClearViews(Carrier& carrier, std::uint64_t start, std::uint64_t end) {
  carrier.ForEachView([&](View view, PageTable& table) {
    if (view != View::kClosed) table.Clear({start}, end - start);
  });
  return carrier.ClearClosed(start, end);
}

void AddressSpace::HarvestAccess(Carrier& carrier, std::uint64_t start, std::uint64_t end) {
  carrier.view(View::kWhole)
      .ForEach({start}, end - start, [&](GuestVirtual address, std::uint64_t, std::uint64_t entry) {
        if ((entry & PageEntry::kAccessed) == 0) return;
        auto [user, inserted] =
            page_users_.try_emplace(address.value / kPageSize, carrier.number());
        if (!inserted && user->second != carrier.number()) user->second = kSeveral;
      });
}

std::optional<PageUse> AddressSpace::CountPageUse() {
  if (!count_page_use_) return std::nullopt;
  const std::lock_guard lock(mutex_);
  PageUse use;
  machine_.ForEachCarrier([&](Carrier& carrier) {
    for (const auto& [start, region] : regions_) HarvestAccess(carrier, start, region.end);
  });
  for (const auto& [page, user] : page_users_) ++(user == kSeveral ? use.several : use.single);
  return use;
}

// Maps what the program has in [block, block_end), which lies in one 2 MiB block, at its own
// address plus `offset`.
void AddressSpace::Populate(Carrier& carrier, View view, std::uint64_t block,
                            std::uint64_t block_end, std::uint64_t offset) {
  PageTable& table = carrier.view(view);
  ForEachRegion(
      block, block_end, [&](const Range& part, std::uint64_t region_start, const Region& region) {
        if (region.protection == PROT_NONE) return;
        const auto [start, end] = part;
        if (view == View::kClosed && region.Trackable() && (offset == 0 || OwnsPages())) {
          const std::uint64_t thread = carrier.thread_page().logical_thread;
          states_->ForEach(start, end, [&](const PageRun& run) {
            if (PageStates::Visible(run, thread) ||
                (offset != 0 &&
                 (PageStates::IsSharedFor(run, thread) || run.state == PageState::kReadOnly))) {
              MapRun(carrier, run, offset);
            }
          });
          return;
        }
        std::uint64_t flags = PageEntry::kUser;
        if (!count_page_use_) flags |= PageEntry::kAccessed | PageEntry::kDirty;
        if ((region.protection & PROT_WRITE) != 0) flags |= PageEntry::kWritable;
        if ((region.protection & PROT_EXEC) == 0 || offset != 0 ||
            (view == View::kOpen && !region.untracked_code && !region.borrowed)) {
          flags |= PageEntry::kNoExecute;
        }
        const auto map = [&](const Range& piece) {
          const GuestPhysical physical =
              machine_.memory().PhysicalOf({piece.start}, region_start, region.end);
          if (!count_page_use_ && piece.start == block && piece.end == block + kLargePageSize &&
              table.MapLarge({piece.start + offset}, physical, flags)) {
            if (view == View::kWhole && !region.shared) TryHugePage(block, region_start);
            return;
          }
          table.Map({piece.start + offset}, physical, piece.end - piece.start, flags);
        };
        const auto map_parts = [&](const Range& piece) {
          if (view == View::kClosed) {
            ForEachApart(piece, region_start, region, offset, map);
          } else {
            map(piece);
          }
        };
        if (region.served) {
          ForEachResident(part, map_parts);
        } else {
          map_parts(part);
        }
      });
}

bool AddressSpace::Collides(std::uint64_t address, std::uint64_t offset) {
  const auto it = FindRegion(address);
  if (it == regions_.end()) return false;
  bool collides = true;
  const std::uint64_t page = AlignDown(address, kPageSize);
  ForEachApart({page, page + kPageSize}, it->first, it->second, offset,
               [&](const Range&) { collides = false; });
  return collides;
}

// Whether the mirror would lie where the monitor's own memory is in view. The program cannot have
// that.
bool AddressSpace::CollidesWithMonitor(std::uint64_t start, std::uint64_t size,
                                       int protection) const {
  if (protection == PROT_NONE || !machine_.shows_code_cache()) return false;
  const auto overlaps = [&](std::uint64_t from, std::uint64_t to) {
    return start < to + kMirroredLow && from + kMirroredLow < start + size;
  };
  return overlaps(TRAPLINE_CACHE_BASE, TRAPLINE_CACHE_END) ||
         overlaps(TRAPLINE_AGENT_BASE, TRAPLINE_AGENT_END);
}

// The shadow memory of sanitizers, which reserve terabytes of it, use little, and lay it out so
// that none of that collides.
bool AddressSpace::IsReservation(std::uint64_t start, const Region& region) {
  return region.end - start >= std::uint64_t{1} << 40;
}

// Before the program has the region at `start`.
void AddressSpace::ClearCollisions(std::uint64_t start, const Region& region) {
  if (region.protection == PROT_NONE || !states_) return;
  const auto clear = [&](std::uint64_t from, std::uint64_t to) {
    for (const Range& part : CoveredParts(from, to)) ClearEntries(part.start, part.end);
  };
  if (start < kLowMirrorStart) {
    clear(start + kMirroredLow, region.end + kMirroredLow);
  } else if (region.end > kMirroredLow) {
    clear(std::max(start, kMirroredLow) + kMirrorOffset, region.end + kMirrorOffset);
  }
}

// Where the memory before a block is in use, the program is filling it, and will use the block,
// too: KVM then has one page to map instead of 512.
void AddressSpace::TryHugePage(std::uint64_t block, std::uint64_t region_start) {
  constexpr std::uint64_t kBefore = 64;  // pages
  if (PagesInMemoryBefore(block, kBefore, region_start) != kBefore) return;
  // MADV_HUGEPAGE would cut the mapping in two, as mremap could tell. A block without any page
  // cannot be collapsed.
  if (madvise(Pointer(block), kPageSize, MADV_POPULATE_WRITE) == 0 &&
      madvise(Pointer(block), kLargePageSize, MADV_COLLAPSE) == 0) {
    huge_blocks_.push_back(block);
  }
}

// Before pages begin to change hands: at the first of a block that did the kernel would split it,
// and tell KVM of all 2 MiB. Now hardly any of them is mapped.
void AddressSpace::SplitHugePages() {
  for (const std::uint64_t block : std::exchange(huge_blocks_, {}))
    DropTranslations({block, block + kPageSize - 1});
}

bool AddressSpace::IsMapped(Carrier& carrier, View view, GuestVirtual address) {
  return carrier.view(view).Lookup(address) != 0;
}

GuestPhysical AddressSpace::RootOf(Carrier& carrier, View view) {
  const std::lock_guard lock(mutex_);
  return carrier.view(view).root();
}

// A page that the program is to serve is waited for here, where nothing is held. In KVM_RUN the
// wait would hold up whoever shows the guest new memory (KVM_SET_USER_MEMORY_REGION waits for it),
// and that may be the thread that serves. What is wrong, if the page did not come.
std::optional<FaultVerdict> AddressSpace::AwaitServed(std::uint64_t address, bool write) {
  if (!serves_.load(std::memory_order_relaxed)) return std::nullopt;
  {
    const std::lock_guard lock(mutex_);
    const auto it = FindRegion(address);
    const bool is_served = it != regions_.end() && it->second.served &&
                           it->second.protection != PROT_NONE &&
                           (!write || (it->second.protection & PROT_WRITE) != 0);
    if (!is_served) return std::nullopt;
  }
  return Probe(AlignDown(address, kPageSize), write);
}

FaultVerdict AddressSpace::Resolve(Carrier& carrier, View view, GuestVirtual address, bool write,
                                   bool fetch, std::uint64_t rip) {
  if (const auto failure = AwaitServed(address.value, write)) return *failure;
  std::unique_lock lock(mutex_);
  // Under adaptive, the cache uses pages at their mirrors.
  const bool uses = carrier.native() || (states_ && policy() != SharingPolicy::kAdaptive);
  // A child of vfork, in View::kWhole, has nothing to do with the order of its parent's events.
  if (view == View::kClosed && !fetch && uses) CatchUp(lock, carrier, address.value);
  const FaultVerdict verdict = ResolveLocked(carrier, view, address, write, fetch, rip);
  lock.unlock();
  // What became the thread's own in the cache is told when it leaves that.
  if (uses) TellOpened(carrier);
  return verdict;
}

FaultVerdict AddressSpace::ResolveLocked(Carrier& carrier, View view, GuestVirtual address,
                                         bool write, bool fetch, std::uint64_t rip) {
  if (address.value >= kUserAddressEnd) return FaultVerdict::kNotMapped;
  auto it = FindRegion(address.value);
  if (it == regions_.end()) {
    if (!TryGrow(address.value)) return FaultVerdict::kNotMapped;
    it = FindRegion(address.value);
  }
  const int protection = it->second.protection;
  if (protection == PROT_NONE || (write && (protection & PROT_WRITE) == 0) ||
      (fetch && (protection & PROT_EXEC) == 0)) {
    return FaultVerdict::kNotPermitted;
  }
  if (view == View::kClosed && Collides(address.value, 0))
    return TrackedCodeAt(fetch ? address.value : rip) ? FaultVerdict::kShared
                                                      : FaultVerdict::kUntrackedCode;
  if (view == View::kOpen && fetch && !it->second.untracked_code && !it->second.borrowed)
    return FaultVerdict::kTrackedCode;
  if (view == View::kClosed && !fetch && it->second.Trackable()) {
    const bool adaptive = states_->policy() == SharingPolicy::kAdaptive;
    PageRun run = states_->Find(address.value, it->first, it->second.end);
    const std::uint64_t thread = carrier.thread_page().logical_thread;
    carrier.met_busy = false;
    if (PageStates::IsSharedFor(run, thread) && adaptive && carrier.native() &&
        Reopen(carrier, AlignDown(address.value, kPageSize), write, it)) {
      run = states_->Find(address.value, it->first, it->second.end);
    }
    const bool visible =
        PageStates::Visible(run, thread) || (run.state == PageState::kReadOnly && !write);
    const bool free = adaptive && carrier.native() && PageStates::IsFree(run);
    if (!visible && !free && !TrackedCodeAt(rip)) return FaultVerdict::kUntrackedCode;
    if (adaptive && !carrier.native() && run.state != PageState::kUntracked)
      return FaultVerdict::kShared;
    if (carrier.distrusted_faults == 0) {
      const FaultVerdict verdict = MapTouched(carrier, address.value, write, it, rip);
      // It goes on in the code cache, with the same access.
      if (verdict == FaultVerdict::kShared && adaptive && carrier.native())
        PopulateMirror(carrier, address.value, true);
      return verdict;
    }
  }
  if (count_page_use_) {
    // Mapping anew clears accessed bits: remember them first.
    HarvestAccess(carrier, AlignDown(address.value, kLargePageSize),
                  AlignDown(address.value, kLargePageSize) + kLargePageSize);
  }
  if (carrier.distrusted_faults > 0) {
    --carrier.distrusted_faults;
    const std::uint64_t page = AlignDown(address.value, kPageSize);
    if (const auto failure = Probe(page, write)) return *failure;
    if (view == View::kClosed && it->second.Trackable())
      return MapTouched(carrier, address.value, write, it, rip);
    Populate(carrier, view, page, page + kPageSize);
    return FaultVerdict::kMapped;
  }
  // Everything of the program's in the 2 MiB block around the address: a fault that reaches the
  // monitor costs ~35 us on kvm_pvm, 512 entries written in one go next to nothing.
  const std::uint64_t block = AlignDown(address.value, kLargePageSize);
  Populate(carrier, view, block, std::min(block + kLargePageSize, kUserAddressEnd));
  return FaultVerdict::kMapped;
}

FaultVerdict AddressSpace::ResolveMirror(Carrier& carrier, GuestVirtual address, bool write,
                                         std::uint64_t rip) {
  if (const auto failure = AwaitServed(address.value, write)) return *failure;
  std::unique_lock lock(mutex_);
  CatchUp(lock, carrier, address.value);
  const FaultVerdict verdict = ResolveMirrorLocked(carrier, address, write, rip);
  lock.unlock();
  if (carrier.native()) TellOpened(carrier);
  return verdict;
}

FaultVerdict AddressSpace::ResolveMirrorLocked(Carrier& carrier, GuestVirtual address, bool write,
                                               std::uint64_t rip) {
  auto it = FindRegion(address.value);
  if (it == regions_.end()) {
    if (!TryGrow(address.value)) return FaultVerdict::kNotMapped;
    it = FindRegion(address.value);
  }
  const int protection = it->second.protection;
  if (protection == PROT_NONE || (write && (protection & PROT_WRITE) == 0))
    return FaultVerdict::kNotPermitted;
  if (Collides(address.value, kMirrorOffset)) return FaultVerdict::kNoMirror;
  if (carrier.distrusted_faults > 0) {
    --carrier.distrusted_faults;
    const std::uint64_t page = AlignDown(address.value, kPageSize);
    if (const auto failure = Probe(page, write)) return *failure;
    if (OwnsPages() && it->second.Trackable()) TouchTracked(carrier, address.value, write, it, rip);
    Populate(carrier, View::kClosed, page, page + kPageSize, kMirrorOffset);
    return FaultVerdict::kMapped;
  }
  const bool tracked = OwnsPages() && it->second.Trackable();
  if (tracked) TouchTracked(carrier, address.value, write, it, rip);
  PopulateMirror(carrier, address.value, tracked);
  return FaultVerdict::kMapped;
}

// The mirror of what the thread may use around `address`, which it is about to use.
void AddressSpace::PopulateMirror(Carrier& carrier, std::uint64_t address, bool tracked) {
  if (Collides(address, kMirrorOffset)) return;
  const std::uint64_t block = AlignDown(address, kLargePageSize);
  Populate(carrier, View::kClosed, block, std::min(block + kLargePageSize, kUserAddressEnd),
           kMirrorOffset);
  if (tracked) MarkUsed(carrier, AlignDown(address, kPageSize) + kMirrorOffset);
}

void AddressSpace::Distrust(Carrier& carrier, std::optional<GuestPhysical> physical) {
  const std::lock_guard lock(mutex_);
  std::optional<GuestVirtual> address;
  if (physical) address = machine_.memory().VirtualOf(*physical);
  UsedPages used;
  const auto clear = [&](std::uint64_t start, std::uint64_t end) {
    used.Add(ClearViews(carrier, start, end));
  };
  if (address) {
    const std::uint64_t page = AlignDown(address->value, kPageSize);
    clear(page, page + kPageSize);
  } else {
    clear(0, TRAPLINE_CACHE_BASE);
    clear(TRAPLINE_CACHE_END, TRAPLINE_AGENT_BASE);
    clear(TRAPLINE_AGENT_END, TRAPLINE_REPEAT_TABLES);
    clear(TRAPLINE_REPEAT_TABLES_END, kUserAddressEnd);
  }
  DropTranslations(used);
  // Without the address, the page that failed is among the next few the interrupted instruction
  // touches.
  carrier.distrusted_faults = address ? 1 : 64;
}

}  // namespace trapline
