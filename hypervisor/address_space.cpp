#include "hypervisor/address_space.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include "hypervisor/client_requests.h"
#include "hypervisor/link_target.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // since Linux 6.1
#endif

namespace trapline {
namespace {

constexpr unsigned kSeveral = ~0u;
// Native kernels keep this much free below a growing stack (stack_guard_gap).
constexpr std::uint64_t kStackGuardGap = 256 * kPageSize;

void* Pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

long Host(long result) { return result < 0 ? -errno : result; }

// KVM reads what it maps, so a page that may only be executed or only be written must be readable
// on the host; on x86-64 the program can read it natively too.
int HostProtection(int protection) {
  return (protection & (PROT_WRITE | PROT_EXEC)) != 0 ? protection | PROT_READ : protection;
}

bool ValidRange(std::uint64_t address, std::uint64_t length) {
  return length <= kUserAddressEnd && address <= kUserAddressEnd - length;
}

// How many of the `count` pages, at most 64, before `end` are in memory. 0 if they begin before
// `region_start`.
std::uint64_t PagesInMemoryBefore(std::uint64_t end, std::uint64_t count,
                                  std::uint64_t region_start) {
  std::array<unsigned char, 64> in_memory{};
  const std::uint64_t size = count * kPageSize;
  if (end - region_start < size || mincore(Pointer(end - size), size, in_memory.data()) != 0)
    return 0;
  return static_cast<std::uint64_t>(
      std::count_if(in_memory.begin(), in_memory.begin() + static_cast<std::ptrdiff_t>(count),
                    [](unsigned char page) { return (page & 1) != 0; }));
}

// The file behind a descriptor, by name; empty when it has none.
std::string FileOf(int fd) { return LinkTarget(fmt::format("/proc/self/fd/{}", fd)); }

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

namespace {

// Whether the host has the page: what is wrong if it has not.
std::optional<FaultVerdict> Probe(std::uint64_t page, bool write) {
  if (madvise(Pointer(page), kPageSize, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0)
    return std::nullopt;
  if (errno == EHWPOISON) return FaultVerdict::kMemoryFailure;
  if (errno == EFAULT) return FaultVerdict::kBusError;
  if (errno == ENOMEM) return FaultVerdict::kNotMapped;  // gone behind our back: MADV_DONTFORK
  return std::nullopt;
}

}  // namespace

// --- region bookkeeping

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

template <class Visit>
void AddressSpace::ForEachRegion(std::uint64_t start, std::uint64_t end, Visit&& visit) const {
  auto it = regions_.upper_bound(start);
  if (it != regions_.begin()) --it;
  for (; it != regions_.end() && it->first < end; ++it) {
    const Range part{std::max(start, it->first), std::min(end, it->second.end)};
    if (part.start < part.end) visit(part, it->first, it->second);
  }
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
  if (states_) NoteChangedCode(start, end);
  Split(start);
  Split(end);
  regions_.erase(regions_.lower_bound(start), regions_.lower_bound(end));
  if (watches_aliases_) FindAliases();
}

void AddressSpace::Insert(std::uint64_t start, const Region& region) {
  Remove(start, region.end);
  auto it = regions_.insert_or_assign(start, region).first;
  // Neighbours of the same kind become one, so that runs and large pages see whole mappings.
  const auto same = [](const Region& a, const Region& b) {
    return a.protection == b.protection && a.shared == b.shared && !a.grows_down && !b.grows_down &&
           a.borrowed == b.borrowed && a.untracked_code == b.untracked_code && a.object == 0 &&
           b.object == 0;
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

// --- page tables

void AddressSpace::ClearEntries(std::uint64_t start, std::uint64_t end) {
  machine_.ForEachCarrier([&](Carrier& carrier) {
    if (count_page_use_) HarvestAccess(carrier, start, end);
    carrier.ForEachView([&](View view, PageTable& table) {
      table.Clear({start}, end - start);
      if (view == View::kClosed) carrier.ClearMirror(start, end);
    });
  });
}

// Before the entries of regions change.
void AddressSpace::NoteChangedCode(std::uint64_t start, std::uint64_t end) {
  ForEachRegion(start, end, [&](const Range& part, std::uint64_t, const Region& region) {
    if ((region.protection & PROT_EXEC) == 0) return;
    changed_code_.push_back(part);
    code_changed_ = true;
  });
}

std::vector<Range> AddressSpace::TakeChangedCode() {
  if (!code_changed_) return {};
  const std::lock_guard lock(mutex_);
  code_changed_ = false;
  return std::exchange(changed_code_, {});
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

PageUse AddressSpace::CountPageUse() {
  const std::lock_guard lock(mutex_);
  PageUse use;
  if (!count_page_use_) return use;
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
          states_->ForEach(start, end, [&](const PageRun& run) {
            if (PageStates::Visible(run, carrier.thread_page().logical_thread) ||
                (offset != 0 &&
                 (run.state == PageState::kShared || run.state == PageState::kReadOnly))) {
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
        const GuestPhysical physical =
            machine_.memory().PhysicalOf({start}, region_start, region.end);
        if (!count_page_use_ && start == block && end == block + kLargePageSize &&
            table.MapLarge({start + offset}, physical, flags)) {
          if (view == View::kWhole && !region.shared) TryHugePage(block, region_start);
          return;
        }
        table.Map({start + offset}, physical, end - start, flags);
      });
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
    DropTranslations({block, block + kPageSize});
}

// --- tracking

void AddressSpace::SetTrackingRules(TrackingRules rules) {
  const std::lock_guard lock(mutex_);
  states_.emplace(rules.policy);
  rules_ = std::move(rules);
}

void AddressSpace::ShareEveryPage() {
  const std::lock_guard lock(mutex_);
  if (states_) states_.emplace(SharingPolicy::kExact);
}

// Maps pages of a tracked region at their own address plus `offset`. Where the accessed and dirty
// bits are clear they tell later who has used them. Where nobody asks they are set: KVM's shadow
// paging then maps eight neighbours at once, and for writing at the first read, which saves ways
// out of the guest.
void AddressSpace::MapRun(Carrier& carrier, const PageRun& run, std::uint64_t offset, bool used) {
  PageTable& table = carrier.view(View::kClosed);
  std::uint64_t flags = PageEntry::kUser | PageEntry::kNoExecute;
  if (run.state != PageState::kReadOnly) flags |= PageEntry::kWritable;
  const bool native = offset == 0;
  const bool untracked = run.state == PageState::kUntracked;
  if (untracked || used || run.state == PageState::kReadOnly) flags |= PageEntry::kAccessed;
  if (untracked || (native && states_->policy() != SharingPolicy::kWriteShared))
    flags |= PageEntry::kDirty;
  ForEachRegion(
      run.start, run.end, [&](const Range& part, std::uint64_t region_start, const Region& region) {
        if (!region.Trackable()) return;
        for (std::uint64_t page = part.start; page < part.end; page += kPageSize) {
          if (table.Lookup({page + offset}) != 0) continue;
          table.Map({page + offset}, machine_.memory().PhysicalOf({page}, region_start, region.end),
                    kPageSize, flags);
        }
      });
}

Carrier* AddressSpace::CarrierOf(std::uint64_t logical_thread) {
  Carrier* found = nullptr;
  machine_.ForEachCarrier([&](Carrier& carrier) {
    if (carrier.thread_page().logical_thread == logical_thread && carrier.in_use) found = &carrier;
  });
  return found;
}

// Takes pages out of a thread's table.
void AddressSpace::Revoke(Carrier& carrier, const PageRun& run) {
  carrier.view(View::kClosed).Clear({run.start}, run.end - run.start);
  if (OwnsPages()) carrier.ClearMirror(run.start, run.end);
  DropTranslations(run);
}

// Makes KVM notice that entries are gone.
void AddressSpace::DropTranslations(const PageRun& run) {
  for (const Range& part : OwnParts(run.start, run.end)) {
    const auto& [start, region] = *FindRegion(part.start);
    const int protection = HostProtection(region.protection);
    if (protection != PROT_NONE)
      notifier_.Fire(part.start, part.end, start, region.end, protection);
  }
}

void AddressSpace::OnProgramWatchesMemory() {
  const std::lock_guard lock(mutex_);
  notifier_.LeaveToProgram();
}

void AddressSpace::OnForkedChild(bool shared_descriptors) {
  const std::lock_guard lock(mutex_);
  notifier_.OnForkedChild(shared_descriptors);
}

// Whether the owner of the pages may have used them in code that was not checked.
bool AddressSpace::UsedNatively(Carrier& owner, const PageRun& run) {
  if (!owner.was_native()) return false;
  // It may do so until they are taken from it.
  if (owner.native()) return true;
  for (std::uint64_t page = run.start; page < run.end; page += kPageSize) {
    const std::uint64_t entry = owner.view(View::kClosed).Lookup({page});
    if (entry == 0 || (entry & PageEntry::kAccessed) != 0) return true;
  }
  return false;
}

bool AddressSpace::Written(Carrier& owner, const PageRun& run) {
  for (std::uint64_t page = run.start; page < run.end; page += kPageSize) {
    const std::uint64_t entry = owner.view(View::kClosed).Lookup({page}) | owner.MirrorEntry(page);
    if (entry == 0 || (entry & PageEntry::kDirty) != 0) return true;
  }
  return false;
}

// The carrier's thread touches a page of a tracked region. Pages taken from another thread are
// gone from its table.
PageState AddressSpace::TouchTracked(Carrier& carrier, std::uint64_t address, bool write,
                                     RegionMap::iterator region) {
  const auto used = [&](std::uint64_t page, std::uint64_t owner) {
    Carrier* const other = CarrierOf(owner);
    if (other == nullptr) return false;
    const std::uint64_t entry = other->view(View::kClosed).Lookup({page});
    const std::uint64_t mirror = other->MirrorEntry(page);
    // Without an entry it is the system that used the page for the owner, or rights have changed
    // since: what the owner did while it was checked is known.
    if ((entry | mirror) == 0) return states_->policy() != SharingPolicy::kAdaptive;
    return ((entry | mirror) & PageEntry::kAccessed) != 0;
  };
  const std::uint64_t thread = carrier.thread_page().logical_thread;
  const PageRun before = states_->Find(address, region->first, region->second.end);
  const Touch touch =
      states_->OnTouch(thread, address, write, region->first, region->second.end, used);
  if (touch.hide) Hide(touch.run);
  if (touch.revoke) {
    Carrier* const owner = CarrierOf(touch.revoke->owner);
    const bool unseen = owner == nullptr || UsedNatively(*owner, *touch.revoke);
    const bool only_read = states_->policy() == SharingPolicy::kWriteShared && !write &&
                           touch.run.state == PageState::kShared && owner != nullptr &&
                           !Written(*owner, *touch.revoke);
    if (owner != nullptr) Revoke(*owner, *touch.revoke);
    if (unseen &&
        (touch.run.state == PageState::kShared || states_->policy() == SharingPolicy::kAdaptive))
      rules_.on_ownership_lost(touch.revoke->owner, {*touch.revoke});
    if (only_read) {
      states_->MakeReadOnly(touch.run.start, touch.run.end);
      return PageState::kReadOnly;
    }
  }
  const bool claims = before.state == PageState::kUntouched;
  if (touch.run.state == PageState::kPrivate && (claims || before.owner != thread)) {
    // Others may have released something here, before they gave the pages up or ended.
    rules_.on_claimed(thread, touch.run);
    if (carrier.native()) {
      rules_.on_opened(thread, touch.run);
    } else {
      carrier.to_open.push_back(touch.run);
    }
    if (claims && watches_aliases_ && region->second.object != 0 && OwnsPages()) {
      // It may be mapped elsewhere, too.
      states_->Share(touch.run.start, touch.run.end);
      return PageState::kShared;
    }
    if (claims && carrier.native()) PrepareWalk(carrier, touch.run, write, region);
  }
  return touch.run.state;
}

// A claim that is longer than the first of its kind is that of a thread that walks upwards, and
// will use the pages. KVM maps eight at a time of those that are in memory and marked as used;
// where half of what lies before them is in memory, they are put there now.
void AddressSpace::PrepareWalk(Carrier& carrier, const PageRun& claimed, bool write,
                               RegionMap::iterator region) {
  constexpr std::uint64_t kWalk = 32 * kPageSize;
  constexpr std::uint64_t kBefore = 16;  // pages
  if (claimed.end - claimed.start < kWalk) return;
  if (!region->second.shared &&
      PagesInMemoryBefore(claimed.start, kBefore, region->first) >= kBefore / 2) {
    // If there is no memory for it the program is told when it touches a page.
    static_cast<void>(madvise(Pointer(claimed.start), claimed.end - claimed.start,
                              write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ));
  }
  MapRun(carrier, claimed, 0, true);
}

FaultVerdict AddressSpace::MapTouched(Carrier& carrier, std::uint64_t address, bool write,
                                      RegionMap::iterator region) {
  if (TouchTracked(carrier, address, write, region) == PageState::kShared)
    return FaultVerdict::kShared;
  // As much as a claim may be long, to either side.
  const std::uint64_t block = AlignDown(address, kLargePageSize);
  const PageRun run = states_->Find(address, std::max(region->first, block),
                                    std::min(region->second.end, block + 2 * kLargePageSize));
  if (run.state == PageState::kReadOnly)
    rules_.on_opened(carrier.thread_page().logical_thread, run);
  MapRun(carrier, run);
  MarkUsed(carrier, AlignDown(address, kPageSize));
  return FaultVerdict::kMapped;
}

// The carrier's thread is about to use the page at `address`. Until it has, another one that claims
// a neighbour would get this page with it, and the other way round, again and again.
void AddressSpace::MarkUsed(Carrier& carrier, std::uint64_t address) {
  PageTable& table = carrier.view(View::kClosed);
  const std::uint64_t entry = table.Lookup({address});
  if (entry == 0 || (entry & (PageEntry::kAccessed | PageEntry::kLarge)) != 0) return;
  table.Map({address}, GuestPhysical{entry & PageEntry::kAddress}, kPageSize,
            (entry & ~PageEntry::kAddress) | PageEntry::kAccessed);
}

// Takes pages out of all threads' tables.
void AddressSpace::Hide(const PageRun& run) {
  machine_.ForEachCarrier([&](Carrier& carrier) {
    carrier.ForEachView([&](View view, PageTable& table) {
      if (view != View::kClosed) return;
      table.Clear({run.start}, run.end - run.start);
      carrier.ClearMirror(run.start, run.end);
    });
  });
  DropTranslations(run);
}

// Native code of the carrier's thread has met a shared page. If it is the only one that has used
// the page since such a meeting last, or nobody has written to it, it need not meet it again.
// Otherwise what the page is used for is watched anew.
bool AddressSpace::Reopen(Carrier& carrier, std::uint64_t page, bool write,
                          RegionMap::iterator region) {
  if (watches_aliases_ && region->second.object != 0) return false;
  enum class Use { kOwn, kReadOnly, kBusy };
  const auto use_of = [&](std::uint64_t at) {
    bool others = false, written = write;
    machine_.ForEachCarrier([&](Carrier& user) {
      if (!user.in_use) return;
      const std::uint64_t entry = user.MirrorEntry(at);
      others = others || (&user != &carrier && (entry & PageEntry::kAccessed) != 0);
      written = written || (entry & PageEntry::kDirty) != 0;
    });
    return !others ? Use::kOwn : !written ? Use::kReadOnly : Use::kBusy;
  };
  const std::uint64_t thread = carrier.thread_page().logical_thread;
  const Use use = use_of(page);
  // Neighbours that are used likewise go with it.
  const PageRun shared = states_->Find(page, region->first, region->second.end);
  const Neighbourhood::Pages pages =
      (use == Use::kBusy ? carrier.watched : carrier.reopened).Around(page);
  PageRun run{page, page + kPageSize, PageState::kShared, thread};
  const std::uint64_t start = std::max(pages.start, shared.start);
  const std::uint64_t end = std::min(pages.end, shared.end);
  while (run.start > start && use_of(run.start - kPageSize) == use) run.start -= kPageSize;
  while (run.end < end && use_of(run.end) == use) run.end += kPageSize;
  if (use == Use::kBusy) {
    for (std::uint64_t at = run.start; at < run.end; at += kPageSize)
      carrier.rewatched += (carrier.MirrorEntry(at) & PageEntry::kAccessed) != 0 ? 1 : 0;
  }
  Hide(run);
  if (use == Use::kBusy) return false;
  if (use == Use::kOwn) {
    states_->Give(run.start, run.end, thread);
    rules_.on_opened(thread, run);
    // So many are given only where the thread has been using one after the other.
    constexpr std::uint64_t kDense = 16 * kPageSize;
    constexpr std::size_t kMostLeases = 256;
    run.state = PageState::kPrivate;
    if (run.end - run.start >= kDense) {
      MapRun(carrier, run, 0, true);
      if (carrier.leased.size() == kMostLeases) carrier.leased.erase(carrier.leased.begin());
      carrier.leased.push_back(run);
    }
  } else {
    states_->MakeReadOnly(run.start, run.end);
  }
  reopened_ += (run.end - run.start) / kPageSize;
  return true;
}

void AddressSpace::Freshen(std::uint64_t start, std::uint64_t end) {
  if (!states_ || start >= end) return;
  if (!watches_aliases_) {
    rules_.on_fresh_memory(start, end);
  } else {
    for (const Range& part : OnlyViews(start, end)) rules_.on_fresh_memory(part.start, part.end);
  }
  // What the user untracked by address stays so; everything else starts anew.
  std::vector<PageRun> runs;
  states_->ForEach(start, end, [&](const PageRun& run) { runs.push_back(run); });
  for (const PageRun& run : runs) {
    if (run.state != PageState::kUntracked) states_->Clear(run.start, run.end);
  }
}

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
    if (run.state == PageState::kPrivate || run.state == PageState::kReadOnly) runs.push_back(run);
  });
  for (const PageRun& run : runs) {
    states_->Share(run.start, run.end);
    if (run.state == PageState::kReadOnly) {
      Hide(run);
      continue;
    }
    Carrier* const owner = CarrierOf(run.owner);
    const bool unseen = owner == nullptr || UsedNatively(*owner, run);
    if (owner != nullptr) Revoke(*owner, run);
    if (unseen) rules_.on_ownership_lost(run.owner, {run});
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

bool AddressSpace::TrackedCodeAt(std::uint64_t address) {
  const auto region = FindRegion(address);
  return region != regions_.end() && !region->second.untracked_code && !region->second.borrowed;
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

std::vector<Range> AddressSpace::CheckedParts(Carrier& carrier, std::uint64_t address,
                                              std::uint64_t size, bool write) {
  const std::lock_guard lock(mutex_);
  std::vector<Range> parts;
  if (!states_ || size > kUserAddressEnd || address > kUserAddressEnd - size) return parts;
  const std::uint64_t end = address + size;
  for (std::uint64_t at = address; at < end;) {
    const std::uint64_t next = std::min(end, AlignDown(at, kPageSize) + kPageSize);
    const auto region = FindRegion(at);
    PageState state = PageState::kUntracked;
    if (region != regions_.end() && region->second.Trackable())
      state = TouchTracked(carrier, at, write, region);
    const bool cold = states_->policy() == SharingPolicy::kAdaptive && !carrier.native();
    if (state == PageState::kShared || (cold && state != PageState::kUntracked)) {
      if (!parts.empty() && parts.back().end == at) {
        parts.back().end = next;
      } else {
        parts.push_back({at, next});
      }
    }
    at = next;
  }
  return parts;
}

void AddressSpace::OpenOwn(Carrier& carrier) {
  const std::lock_guard lock(mutex_);
  carrier.leased.clear();
  for (const PageRun& run : std::exchange(carrier.to_open, {}))
    rules_.on_opened(carrier.thread_page().logical_thread, run);
}

void AddressSpace::Seal(Carrier& carrier) {
  const std::lock_guard lock(mutex_);
  if (!states_) return;
  SplitHugePages();
  const std::uint64_t thread = carrier.thread_page().logical_thread;
  const std::vector<PageRun> sealed = states_->Seal(thread);
  if (sealed.empty()) return;
  std::vector<PageRun> unseen;
  for (const PageRun& run : sealed) {
    if (UsedNatively(carrier, run)) unseen.push_back(run);
    Revoke(carrier, run);
  }
  if (!unseen.empty()) rules_.on_ownership_lost(thread, unseen);
}

void AddressSpace::ForgetStates() {
  const std::lock_guard lock(mutex_);
  if (!states_) return;
  std::vector<PageRun> owned, shared;
  states_->ForEach(0, kUserAddressEnd, [&](const PageRun& run) {
    if (run.state == PageState::kPrivate) owned.push_back(run);
    if ((run.state == PageState::kShared && OwnsPages()) || run.state == PageState::kReadOnly)
      shared.push_back(run);
  });
  for (const PageRun& run : owned) {
    if (Carrier* const owner = CarrierOf(run.owner)) Revoke(*owner, run);
  }
  for (const PageRun& run : shared) Hide(run);
  states_->Reset();
}

void AddressSpace::Untrack(std::uint64_t start, std::uint64_t end) {
  const std::lock_guard lock(mutex_);
  if (!states_) return;
  // Present everywhere from now on; threads find out by a fault.
  states_->Untrack(AlignUp(start, kPageSize), AlignDown(end, kPageSize));
}

void AddressSpace::Track(std::uint64_t start, std::uint64_t end) {
  const std::lock_guard lock(mutex_);
  if (!states_) return;
  const std::uint64_t first = AlignDown(start, kPageSize), last = AlignUp(end, kPageSize);
  states_->Track(first, last);
  machine_.ForEachCarrier([&](Carrier& carrier) {
    Revoke(carrier, {first, last, PageState::kUntracked, 0});
  });
}

std::uint64_t AddressSpace::CountPages(PageState state) {
  const std::lock_guard lock(mutex_);
  return states_ ? states_->Count(state) : 0;
}

bool AddressSpace::IsMapped(Carrier& carrier, View view, GuestVirtual address) {
  const std::lock_guard lock(mutex_);
  return carrier.view(view).Lookup(address) != 0;
}

GuestPhysical AddressSpace::RootOf(Carrier& carrier, View view) {
  const std::lock_guard lock(mutex_);
  return carrier.view(view).root();
}

FaultVerdict AddressSpace::Resolve(Carrier& carrier, View view, GuestVirtual address, bool write,
                                   bool fetch, std::uint64_t rip) {
  const std::lock_guard lock(mutex_);
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
  if (view == View::kOpen && fetch && !it->second.untracked_code && !it->second.borrowed)
    return FaultVerdict::kTrackedCode;
  if (view == View::kClosed && !fetch && it->second.Trackable()) {
    const bool adaptive = states_->policy() == SharingPolicy::kAdaptive;
    PageRun run = states_->Find(address.value, it->first, it->second.end);
    if (run.state == PageState::kShared && adaptive && carrier.native() &&
        Reopen(carrier, AlignDown(address.value, kPageSize), write, it)) {
      run = states_->Find(address.value, it->first, it->second.end);
    }
    const bool visible = PageStates::Visible(run, carrier.thread_page().logical_thread) ||
                         (run.state == PageState::kReadOnly && !write);
    const bool free = adaptive && carrier.native() && run.state == PageState::kUntouched;
    if (!visible && !free && !TrackedCodeAt(rip)) return FaultVerdict::kUntrackedCode;
    if (adaptive && !carrier.native() && run.state != PageState::kUntracked)
      return FaultVerdict::kShared;
    if (carrier.distrusted_faults == 0) return MapTouched(carrier, address.value, write, it);
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
      return MapTouched(carrier, address.value, write, it);
    Populate(carrier, view, page, page + kPageSize);
    return FaultVerdict::kMapped;
  }
  // Everything of the program's in the 2 MiB block around the address: a fault that reaches the
  // monitor costs ~35 us on kvm_pvm, 512 entries written in one go next to nothing.
  const std::uint64_t block = AlignDown(address.value, kLargePageSize);
  Populate(carrier, view, block, std::min(block + kLargePageSize, kUserAddressEnd));
  return FaultVerdict::kMapped;
}

std::uint64_t AddressSpace::LeaseEnd(const Carrier& carrier, GuestVirtual address) {
  const std::lock_guard lock(mutex_);
  const auto it = FindRegion(address.value);
  if (it == regions_.end() || !it->second.Trackable()) return 0;
  const PageRun run = states_->Find(address.value, it->first, it->second.end);
  if (run.state != PageState::kPrivate) return 0;
  const Carrier* const owner = CarrierOf(run.owner);
  if (owner == nullptr || owner == &carrier || !owner->native()) return 0;
  const bool leased = std::ranges::any_of(owner->leased, [&](const PageRun& pages) {
    return pages.start <= address.value && address.value < pages.end;
  });
  return leased ? owner->lease_end.load(std::memory_order_relaxed) : 0;
}

FaultVerdict AddressSpace::ResolveMirror(Carrier& carrier, GuestVirtual address, bool write) {
  const std::lock_guard lock(mutex_);
  auto it = FindRegion(address.value);
  if (it == regions_.end()) {
    if (!TryGrow(address.value)) return FaultVerdict::kNotMapped;
    it = FindRegion(address.value);
  }
  const int protection = it->second.protection;
  if (protection == PROT_NONE || (write && (protection & PROT_WRITE) == 0))
    return FaultVerdict::kNotPermitted;
  if (carrier.distrusted_faults > 0) {
    --carrier.distrusted_faults;
    const std::uint64_t page = AlignDown(address.value, kPageSize);
    if (const auto failure = Probe(page, write)) return *failure;
    if (OwnsPages() && it->second.Trackable()) TouchTracked(carrier, address.value, write, it);
    Populate(carrier, View::kClosed, page, page + kPageSize, kMirrorOffset);
    return FaultVerdict::kMapped;
  }
  if (OwnsPages() && it->second.Trackable()) TouchTracked(carrier, address.value, write, it);
  const std::uint64_t block = AlignDown(address.value, kLargePageSize);
  Populate(carrier, View::kClosed, block, std::min(block + kLargePageSize, kUserAddressEnd),
           kMirrorOffset);
  if (OwnsPages() && it->second.Trackable())
    MarkUsed(carrier, AlignDown(address.value, kPageSize) + kMirrorOffset);
  return FaultVerdict::kMapped;
}

void AddressSpace::Distrust(Carrier& carrier, std::optional<GuestPhysical> physical) {
  const std::lock_guard lock(mutex_);
  std::optional<GuestVirtual> address;
  if (physical) address = machine_.memory().VirtualOf(*physical);
  carrier.ForEachView([&](View view, PageTable& table) {
    const auto clear = [&](std::uint64_t start, std::uint64_t end) {
      table.Clear({start}, end - start);
      if (view == View::kClosed) carrier.ClearMirror(start, end);
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
  });
  // Without the address, the page that failed is among the next few the interrupted instruction
  // touches.
  carrier.distrusted_faults = address ? 1 : 64;
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

// --- limits

namespace {

void SetHostLimit(int resource, rlimit limit, bool lifted) {
  const auto which = static_cast<__rlimit_resource>(resource);
  if (lifted) {
    const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(which, &unlimited) == 0) return;
    limit.rlim_cur = limit.rlim_max;
  }
  setrlimit(which, &limit);
}

}  // namespace

MemoryLimits MemoryLimits::TakeOver() {
  MemoryLimits limits;
  getrlimit(RLIMIT_AS, &limits.address_space);
  getrlimit(RLIMIT_DATA, &limits.data);
  limits.Apply(true);
  return limits;
}

void MemoryLimits::Apply(bool lifted) const {
  SetHostLimit(RLIMIT_AS, address_space, lifted);
  SetHostLimit(RLIMIT_DATA, data, lifted);
}

bool AddressSpace::ExceedsLimits(std::uint64_t bytes, int protection, bool shared) const {
  const std::uint64_t most = limits_.address_space.rlim_cur, most_data = limits_.data.rlim_cur;
  if (most == RLIM_INFINITY && most_data == RLIM_INFINITY) return false;
  const auto is_data = [](int bits, bool is_shared) {
    return (bits & PROT_WRITE) != 0 && !is_shared;
  };
  std::uint64_t all = bytes;
  std::uint64_t data = is_data(protection, shared) ? bytes : 0;
  for (const auto& [start, region] : regions_) {
    all += region.end - start;
    if (is_data(region.protection, region.shared) && !region.grows_down) data += region.end - start;
  }
  return all > most || (is_data(protection, shared) && data > most_data);
}

bool AddressSpace::IsOwnLimit(int resource) {
  return resource == RLIMIT_AS || resource == RLIMIT_DATA;
}

MemoryLimits AddressSpace::limits() const {
  const std::lock_guard lock(mutex_);
  return limits_;
}

rlimit AddressSpace::GetLimit(int resource) {
  const std::lock_guard lock(mutex_);
  return resource == RLIMIT_AS ? limits_.address_space : limits_.data;
}

long AddressSpace::SetLimit(int resource, const rlimit& limit) {
  const std::lock_guard lock(mutex_);
  rlimit& current = resource == RLIMIT_AS ? limits_.address_space : limits_.data;
  if (limit.rlim_cur > limit.rlim_max) return -EINVAL;
  if (limit.rlim_max > current.rlim_max && geteuid() != 0) return -EPERM;
  current = limit;
  return 0;
}

// --- system calls

long AddressSpace::Mmap(std::uint64_t address, std::uint64_t length, int protection, int flags,
                        int fd, std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t size = AlignUp(length, kPageSize);
  const bool fixed =
      (flags & MAP_FIXED) != 0 && (flags & MAP_FIXED_NOREPLACE) != MAP_FIXED_NOREPLACE;
  std::uint64_t added = size;
  if (fixed && ValidRange(address, size)) {  // what is replaced does not count twice
    for (const Range& part : CoveredParts(address, address + size)) added -= part.end - part.start;
  }
  if (ExceedsLimits(added, protection, (flags & MAP_TYPE) != MAP_PRIVATE)) return -ENOMEM;
  std::vector<Range> claimed;
  if (fixed && length != 0 && size != 0 && address % kPageSize == 0 && ValidRange(address, size)) {
    if (Borrowed(address, address + size) || !ClaimGaps(address, address + size, claimed))
      return -ENOMEM;
    EndShared(address, address + size);
    Freshen(address, address + size);
    ClearEntries(address, address + size);
  }
  // The host's own growing mappings would grow behind our back: growth is done in TryGrow.
  const long result = Host(syscall(SYS_mmap, address, length, HostProtection(protection),
                                   flags & ~MAP_GROWSDOWN, fd, offset));
  if (result < 0) {
    for (const Range& range : claimed) munmap(Pointer(range.start), range.end - range.start);
    return result;
  }
  const auto start = static_cast<std::uint64_t>(result);
  Region region;
  std::uint64_t end = start + size;
  if ((flags & MAP_HUGETLB) != 0) {  // length is rounded to the huge page size
    int shift = (flags >> MAP_HUGE_SHIFT) & 0x3f;
    if (shift == 0) shift = 21;
    end = start + AlignUp(length, 1ull << shift);
  }
  region.end = end;
  region.protection = protection & (PROT_READ | PROT_WRITE | PROT_EXEC);
  region.shared = (flags & MAP_TYPE) != MAP_PRIVATE;
  if (states_ && fd >= 0 && (flags & MAP_ANONYMOUS) == 0) {
    region.untracked_code = rules_.is_untracked_module(FileOf(fd));
    struct stat file {};
    if (region.shared && fstat(fd, &file) == 0) {
      region.object = (file.st_dev << 40 ^ file.st_ino) + 1;
      region.offset = offset;
      watches_aliases_ |= ++objects_[region.object] > 1;
    }
  }
  if ((flags & MAP_GROWSDOWN) != 0) {
    region.grows_down = true;
    region.growth_limit = kPageSize * 16;
  }
  Insert(start, region);
  if (fd >= 0 && (flags & MAP_ANONYMOUS) == 0 && HasClientRequests(region))
    ArmClientRequests(start, end, HostProtection(protection));
  return result;
}

long AddressSpace::Munmap(std::uint64_t address, std::uint64_t length) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t size = AlignUp(length, kPageSize);
  if (address % kPageSize != 0 || size == 0 || !ValidRange(address, size)) return -EINVAL;
  return MunmapLocked(address, address + size);
}

void AddressSpace::EndShared(std::uint64_t start, std::uint64_t end) {
  if (!rules_.on_shared_memory_ends) return;
  auto region = FindRegion(start);
  if (region == regions_.end()) region = regions_.lower_bound(start);
  for (; region != regions_.end() && region->first < end; ++region) {
    if (region->second.shared) rules_.on_shared_memory_ends(region->first, region->second.end);
  }
}

std::vector<Range> AddressSpace::SharedRegions() const {
  const std::lock_guard lock(mutex_);
  std::vector<Range> shared;
  for (const auto& [start, region] : regions_) {
    if (region.shared) shared.push_back({start, region.end});
  }
  return shared;
}

long AddressSpace::MunmapLocked(std::uint64_t address, std::uint64_t end) {
  EndShared(address, end);
  for (const Range& part : CoveredParts(address, end)) {
    Freshen(part.start, part.end);
    for (const Range& own : OwnParts(part.start, part.end)) {
      ClearEntries(own.start, own.end);
      const long result = Host(munmap(Pointer(own.start), own.end - own.start));
      if (result < 0) return result;
    }
    ClearEntries(part.start, part.end);
    Remove(part.start, part.end);
  }
  return 0;
}

long AddressSpace::MprotectLocked(std::uint64_t address, std::uint64_t end, int protection,
                                  int pkey) {
  ClearEntries(address, end);
  const long result =
      pkey == -1 ? Host(mprotect(Pointer(address), end - address, HostProtection(protection)))
                 : Host(syscall(SYS_pkey_mprotect, address, end - address,
                                HostProtection(protection), pkey));
  if (result < 0) return result;
  const int bits = protection & (PROT_READ | PROT_WRITE | PROT_EXEC);
  Split(address);
  Split(end);
  auto it = regions_.lower_bound(address);
  while (it != regions_.end() && it->first < end) {
    const std::uint64_t start = it->first;
    Region changed = it->second;
    changed.protection = bits;
    if (changed.grows_down) {
      it->second = changed;
      ++it;
      continue;
    }
    ++it;
    Insert(start, changed);
    it = regions_.upper_bound(start);
  }
  return 0;
}

long AddressSpace::Mprotect(std::uint64_t address, std::uint64_t length, int protection, int pkey) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t size = AlignUp(length, kPageSize);
  if (address % kPageSize != 0) return -EINVAL;
  if (length == 0) return 0;
  if (size == 0 || !ValidRange(address, size)) return -ENOMEM;
  if ((protection & (PROT_GROWSDOWN | PROT_GROWSUP)) != 0) {
    const auto it = FindRegion(address);
    if (it == regions_.end() || !it->second.grows_down) return -EINVAL;
    return MprotectLocked(it->first, address + size, protection & ~PROT_GROWSDOWN, pkey);
  }
  const auto parts = CoveredParts(address, address + size);
  if (parts.empty() || parts[0].start != address) return -ENOMEM;
  if (Borrowed(address, address + size)) return -EACCES;
  // Region by region, as the kernel does: what comes before a refusal stays changed.
  for (const Range& own : OwnParts(address, parts[0].end)) {
    // Space that becomes data counts as it (mprotect_fixup).
    const Region& region = FindRegion(own.start)->second;
    const auto exceeds = [&](int bits) {
      return ExceedsLimits(own.end - own.start, bits, region.shared || region.grows_down);
    };
    if ((protection & PROT_WRITE) != 0 && exceeds(protection) && !exceeds(region.protection))
      return -ENOMEM;
    const long result = MprotectLocked(own.start, own.end, protection, pkey);
    if (result < 0) return result;
  }
  return parts[0].end == address + size ? 0 : -ENOMEM;
}

long AddressSpace::Mremap(std::uint64_t address, std::uint64_t old_length, std::uint64_t new_length,
                          int flags, std::uint64_t new_address) {
  const std::lock_guard lock(mutex_);
  std::uint64_t old_size = AlignUp(old_length, kPageSize);
  const std::uint64_t new_size = AlignUp(new_length, kPageSize);
  if (address % kPageSize != 0 || new_size == 0 || !ValidRange(address, old_size) ||
      !ValidRange(0, new_size)) {
    return -EINVAL;
  }
  const bool to_fixed = (flags & MREMAP_FIXED) != 0;
  if ((flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0 ||
      ((flags & MREMAP_MAYMOVE) == 0 && flags != 0)) {
    return -EINVAL;
  }
  if (to_fixed && (new_address % kPageSize != 0 || !ValidRange(new_address, new_size) ||
                   (new_address < address + old_size && address < new_address + new_size))) {
    return -EINVAL;
  }
  const auto source = FindRegion(address);
  const bool shrinks = old_size >= new_size && (flags & MREMAP_DONTUNMAP) == 0;
  if (source != regions_.end() && shrinks && !to_fixed) {
    // What is too much goes, whatever it is made of.
    const long result = MunmapLocked(address + new_size, address + old_size);
    return result < 0 ? result : static_cast<long>(address);
  }
  const std::uint64_t kept = std::min(old_size, new_size);
  // Linux 6.17 and later move several mappings at once; here that is the error it used to be.
  if (source == regions_.end() ||
      (old_size != 0 && source->second.end < address + (shrinks ? kept : old_size))) {
    return -EFAULT;
  }
  const Region region = source->second;
  if (region.borrowed) return -EINVAL;
  if (new_size > old_size && ExceedsLimits(new_size - old_size, region.protection, region.shared))
    return -ENOMEM;
  std::vector<Range> claimed;
  if (to_fixed) {
    if (Borrowed(new_address, new_address + new_size)) return -ENOMEM;
    if (!ClaimGaps(new_address, new_address + new_size, claimed)) return -ENOMEM;
    Freshen(new_address, new_address + new_size);
    ClearEntries(new_address, new_address + new_size);
    if (shrinks) {
      MunmapLocked(address + new_size, address + old_size);
      old_size = new_size;
    }
  }
  if (old_size != 0) ClearEntries(address, address + old_size);
  const long result = Host(syscall(SYS_mremap, address, old_size, new_length, flags, new_address));
  if (result < 0) {
    for (const Range& range : claimed) munmap(Pointer(range.start), range.end - range.start);
    // Linux before 6.17 looks at the source only when what was at the destination is gone.
    if (to_fixed) {
      for (const Range& own : OwnParts(new_address, new_address + new_size)) {
        unsigned char there = 0;
        if (mincore(Pointer(own.start), kPageSize, &there) != 0) Remove(own.start, own.end);
      }
    }
    return result;
  }
  if (states_ && old_size != 0) {
    const auto to = static_cast<std::uint64_t>(result);
    if (to != address) {
      // Other views of the same memory take the history over (FindAliases).
      for (const Range& part : watches_aliases_ ? OnlyViews(address, address + kept)
                                                : std::vector<Range>{{address, address + kept}}) {
        rules_.on_moved(part.start, to + (part.start - address), part.end - part.start);
      }
      states_->Move(address, to, kept);
    }
    if (kept < old_size) Freshen(address + kept, address + old_size);
  }
  if (old_size != 0 && (flags & MREMAP_DONTUNMAP) == 0) Remove(address, address + old_size);
  Region moved = region;
  moved.grows_down = false;
  moved.end = static_cast<std::uint64_t>(result) + new_size;
  Insert(static_cast<std::uint64_t>(result), moved);
  return result;
}

long AddressSpace::Madvise(std::uint64_t address, std::uint64_t length, int advice) {
  const std::uint64_t size = AlignUp(length, kPageSize);
  const bool wraps = size < length || address + size < address;
  if (address % kPageSize == 0 && size != 0 && !wraps) {
    const std::lock_guard lock(mutex_);
    if (states_ && (advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE)) {
      for (const Range& part : CoveredParts(address, address + size)) {
        for (std::uint64_t at = part.start; at < part.end;) {
          const Region& region = FindRegion(at)->second;
          const std::uint64_t next = std::min(part.end, region.end);
          // Shared memory keeps what it holds; only MADV_REMOVE takes it out of the object.
          if (!region.shared || advice == MADV_REMOVE) {
            Freshen(at, next);
            ClearEntries(at, next);
          }
          at = next;
        }
      }
    }
    if (!Covered(address, address + size)) {
      // Advice must not reach the monitor's memory in the gaps. Natively the rest is done and
      // ENOMEM told. An empty range asks only whether the advice is known.
      if (const long known = Host(madvise(nullptr, 0, advice)); known < 0) return known;
      for (const Range& part : CoveredParts(address, address + size)) {
        const long result = Host(madvise(Pointer(part.start), part.end - part.start, advice));
        if (result < 0) return result;
      }
      return -ENOMEM;
    }
  }
  return Host(madvise(Pointer(address), length, advice));
}

void AddressSpace::SetBreak(std::uint64_t start) {
  const std::lock_guard lock(mutex_);
  break_start_ = break_ = start;
}

long AddressSpace::Brk(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  if (address < break_start_ || address >= kUserAddressEnd) return static_cast<long>(break_);
  const std::uint64_t old_end = AlignUp(break_, kPageSize);
  const std::uint64_t new_end = AlignUp(address, kPageSize);
  if (new_end > old_end) {
    if (ExceedsLimits(new_end - old_end, PROT_READ | PROT_WRITE, false))
      return static_cast<long>(break_);
    void* got = mmap(Pointer(old_end), new_end - old_end, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != Pointer(old_end)) {
      if (got != MAP_FAILED) munmap(got, new_end - old_end);
      return static_cast<long>(break_);
    }
    Region region;
    region.end = new_end;
    region.protection = PROT_READ | PROT_WRITE;
    Insert(old_end, region);
  } else if (new_end < old_end) {
    for (const Range& part : CoveredParts(new_end, old_end)) {
      Freshen(part.start, part.end);
      ClearEntries(part.start, part.end);
      munmap(Pointer(part.start), part.end - part.start);
      Remove(part.start, part.end);
    }
  }
  break_ = address;
  return static_cast<long>(break_);
}

long AddressSpace::Shmat(int id, std::uint64_t address, int flags) {
  const std::lock_guard lock(mutex_);
  shmid_ds info{};
  if (shmctl(id, IPC_STAT, &info) != 0) return -errno;
  const std::uint64_t size = AlignUp(info.shm_segsz, kPageSize);
  std::vector<Range> claimed;
  if ((flags & SHM_REMAP) != 0) {
    if (!ValidRange(address, size) || !ClaimGaps(address, address + size, claimed)) return -EINVAL;
    ClearEntries(address, address + size);
  }
  const long result = Host(syscall(SYS_shmat, id, address, flags));
  if (result < 0 && result > -4096) {
    for (const Range& range : claimed) munmap(Pointer(range.start), range.end - range.start);
    return result;
  }
  Region region;
  const auto start = static_cast<std::uint64_t>(result);
  region.end = start + size;
  region.protection = PROT_READ | ((flags & SHM_RDONLY) != 0 ? 0 : PROT_WRITE) |
                      ((flags & SHM_EXEC) != 0 ? PROT_EXEC : 0);
  region.shared = true;
  if (states_) {
    region.object = ~static_cast<std::uint64_t>(id);
    watches_aliases_ |= ++objects_[region.object] > 1;
  }
  Insert(start, region);
  shm_segments_[start] = size;
  return result;
}

long AddressSpace::Shmdt(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto segment = shm_segments_.find(address);
  if (segment == shm_segments_.end()) return -EINVAL;
  EndShared(address, address + segment->second);
  Freshen(address, address + segment->second);
  ClearEntries(address, address + segment->second);
  const long result = Host(syscall(SYS_shmdt, address));
  if (result < 0) return result;
  // Something else may lie in the segment's place by now; only what is free is gone.
  for (std::uint64_t page = address; page < address + segment->second; page += kPageSize) {
    if (IsFree(page, page + kPageSize)) Remove(page, page + kPageSize);
  }
  shm_segments_.erase(segment);
  return 0;
}

}  // namespace trapline
