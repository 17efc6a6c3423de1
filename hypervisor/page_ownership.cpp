// Tracked pages: whose they are, and how they change hands.
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "hypervisor/address_space.h"
#include "hypervisor/host_mappings.h"

namespace trapline {
namespace {

// So many pages are given, or taken, at once only where the thread has been using one after the
// other.
constexpr std::uint64_t kDense = 16 * kPageSize;
// What a thread must have had for the next one on its carrier to get it: so many bytes side by
// side, as only somebody has who walks through memory (AddressSpace::PrepareWalk), and so many in
// all.
constexpr std::uint64_t kOrphanedRun = 32 * kPageSize, kOrphanedBytes = 128 * kPageSize;

// Whether there is one of which is(address) is true.
template <class Is>
bool AnyPage(const PageRun& run, Is&& is) {
  for (std::uint64_t page = run.start; page < run.end; page += kPageSize) {
    if (is(page)) return true;
  }
  return false;
}

}  // namespace

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
// bits are clear they tell later who has used them. Where nobody asks, or it is known (`used`,
// `written`), they are set: KVM's shadow paging then maps eight neighbours at once, and for writing
// at the first read, which saves ways out of the guest.
void AddressSpace::MapRun(Carrier& carrier, const PageRun& run, std::uint64_t offset, bool used,
                          bool written) {
  PageTable& table = carrier.view(View::kClosed);
  std::uint64_t flags = PageEntry::kUser | PageEntry::kNoExecute;
  if (run.state != PageState::kReadOnly) flags |= PageEntry::kWritable;
  const bool native = offset == 0;
  const bool untracked = run.state == PageState::kUntracked;
  if (untracked || used || run.state == PageState::kReadOnly) flags |= PageEntry::kAccessed;
  // Nobody asks who has written a page that is one thread's own, but under kWriteShared.
  if (untracked || written ||
      ((native || run.state == PageState::kPrivate) &&
       states_->policy() != SharingPolicy::kWriteShared))
    flags |= PageEntry::kDirty;
  // Whether the owner has used a page at all is asked of both places together, so what is known of
  // its own address holds for the mirror. Not the other way round: native use alone may have
  // ordered others (MayOrderUnseen).
  const bool used_if_natively = !native && run.state == PageState::kPrivate;
  ForEachRegion(run.start, run.end,
                [&](const Range& part, std::uint64_t region_start, const Region& region) {
                  if (!region.Trackable()) return;
                  const auto map = [&](const Range& pages) {
                    for (std::uint64_t page = pages.start; page < pages.end; page += kPageSize) {
                      if (table.Lookup({page + offset}) != 0) continue;
                      const std::uint64_t known =
                          used_if_natively ? table.Lookup({page}) & PageEntry::kAccessed : 0;
                      table.Map({page + offset},
                                machine_.memory().PhysicalOf({page}, region_start, region.end),
                                kPageSize, flags | known);
                    }
                  };
                  ForEachApart(part, region_start, region, offset, map);
                });
}

Carrier* AddressSpace::CarrierOf(std::uint64_t logical_thread) {
  Carrier* found = nullptr;
  machine_.ForEachCarrier([&](Carrier& carrier) {
    if (carrier.thread_page().logical_thread == logical_thread && carrier.in_use) found = &carrier;
  });
  return found;
}

// Takes pages out of a thread's table; `keeps_mirror`: not out of its mirror, since they are shared
// now, but as if they had not been used there. Returns whether the thread, their owner, may have
// used them in code that was not checked.
bool AddressSpace::Revoke(Carrier& carrier, const PageRun& run, bool keeps_mirror) {
  const bool known = NativeUseIsKnown(carrier, run);
  UsedPages used = carrier.view(View::kClosed).Clear({run.start}, run.end - run.start);
  // It may have become native, and used them, until just now.
  const bool unseen =
      carrier.was_native() && run.state != PageState::kTaken && (!known || used.any());
  if (OwnsPages()) {
    used.Add(keeps_mirror ? carrier.ForgetMirrorUse(run.start, run.end)
                          : carrier.ClearMirror(run.start, run.end));
  }
  DropTranslations(used);
  return unseen;
}

// The thread ends. If others have come for what it had from the one before, it is not the same
// threads that go on: none leaves anything to the next one for a while.
void AddressSpace::JudgeInheritance(const Carrier& carrier) {
  constexpr unsigned kShortestPause = 16, kLongestPause = 1024;
  if (carrier.inherited == 0) return;
  const bool in_vain = 4 * carrier.inherited_in_vain > carrier.inherited;
  orphan_pause_ = in_vain ? std::clamp(2 * orphan_pause_, kShortestPause, kLongestPause) : 0;
  if (in_vain) orphan_pause_left_ = orphan_pause_;
}

bool AddressSpace::MayOrphan() {
  if (states_->policy() != SharingPolicy::kAdaptive) return false;
  if (orphan_pause_left_ == 0) return true;
  --orphan_pause_left_;
  return false;
}

// Takes orphaned pages out of their carrier's table.
void AddressSpace::Evict(const PageRun& orphaned) {
  UsedPages used;
  machine_.ForEachCarrier([&](Carrier& carrier) {
    if (carrier.number() == orphaned.owner)
      used.Add(carrier.ClearClosed(orphaned.start, orphaned.end));
  });
  DropTranslations(used);
}

// Makes KVM notice that entries are gone.
void AddressSpace::DropTranslations(const UsedPages& pages) {
  if (!pages.any()) return;
  const auto fire = [&](std::uint64_t first, std::uint64_t last) {
    for (const Range& part : OwnParts(first, last + 1)) {
      const auto& [start, region] = *FindRegion(part.start);
      const int protection = HostProtection(region.protection);
      if (protection != PROT_NONE)
        notifier_.Fire(part.start, part.end, start, region.end, protection);
    }
  };
  fire(pages.first, pages.last);
  // What was taken for mirrors may have been low memory, and the other way round.
  if (pages.last >= kMirroredLow)
    fire(std::max(pages.first, kMirroredLow) + kMirrorOffset, pages.last + kMirrorOffset);
  if (pages.first < kLowMirrorStart)
    fire(pages.first + kMirroredLow, std::min(pages.last, kLowMirrorStart - 1) + kMirroredLow);
}

void AddressSpace::OnProgramWatchesMemory() {
  const std::lock_guard lock(mutex_);
  notifier_.LeaveToProgram();
}

void AddressSpace::OnProgramServes(std::uint64_t start, std::uint64_t end) {
  if (start % kPageSize != 0 || end % kPageSize != 0 || start >= end || end > kUserAddressEnd)
    return;
  const std::lock_guard lock(mutex_);
  serves_.store(true, std::memory_order_relaxed);
  for (const Range& part : CoveredParts(start, end)) {
    ClearEntries(part.start, part.end);
    Split(part.start);
    Split(part.end);
    for (auto it = regions_.lower_bound(part.start); it != regions_.end() && it->first < part.end;
         ++it) {
      it->second.served = true;
    }
  }
}

void AddressSpace::ClearServed(std::uint64_t start, std::uint64_t end) {
  ForEachRegion(start, end, [&](const Range& part, std::uint64_t, const Region& region) {
    if (region.served) ClearEntries(part.start, part.end);
  });
}

void AddressSpace::OnForkedChild(bool shared_descriptors) {
  const std::lock_guard lock(mutex_);
  notifier_.OnForkedChild(shared_descriptors);
}

// Whether it is known which of the pages the thread has used natively: none if it never was native;
// else its table must have all of them, which rights that change make absent.
bool AddressSpace::NativeUseIsKnown(Carrier& carrier, const PageRun& run) {
  if (!carrier.was_native()) return true;
  const PageTable& table = carrier.view(View::kClosed);
  return !AnyPage(run, [&](std::uint64_t page) { return table.Lookup({page}) == 0; });
}

// For a thread that has ended.
bool AddressSpace::MayHaveUsedNatively(Carrier& carrier, const PageRun& run) {
  if (!carrier.was_native()) return false;
  const PageTable& table = carrier.view(View::kClosed);
  return AnyPage(run, [&](std::uint64_t page) {
    const std::uint64_t entry = table.Lookup({page});
    return entry == 0 || (entry & PageEntry::kAccessed) != 0;
  });
}

// Whether what a thread does natively may order others after it without anybody having seen it.
// Where it cannot, to take everything that an owner has done for ordered when it loses a page hides
// races: that of fft of bench/programs was found in one run of seven. Counts the loss.
bool AddressSpace::MayOrderUnseen() {
  ++unseen_losses_;
  if (may_order_ || ordering_asked_ == new_code_) return may_order_;
  ordering_asked_ = new_code_;
  std::vector<Range> code;
  bool may = false;
  for (const auto& [start, region] : regions_) {
    if ((region.protection & PROT_EXEC) == 0 || !region.IsTrackedCode()) continue;
    may = may || !region.ReadOnlyCode();  // what is written may become anything
    code.push_back({start, region.end});
  }
  may_order_ = may || rules_.may_order(code);
  return may_order_;
}

bool AddressSpace::Written(Carrier& owner, const PageRun& run) {
  return AnyPage(run, [&](std::uint64_t page) {
    const std::uint64_t entry = owner.view(View::kClosed).Lookup({page}) | owner.MirrorEntry(page);
    return entry == 0 || (entry & PageEntry::kDirty) != 0;
  });
}

// The carrier's thread touches a page of a tracked region, by the instruction at `rip` (0: it is
// not known). Pages taken from another thread are gone from its table.
PageState AddressSpace::TouchTracked(Carrier& carrier, std::uint64_t address, bool write,
                                     RegionMap::iterator region, std::uint64_t rip) {
  // Mostly asked of pages of one thread, one after the other.
  std::optional<std::uint64_t> asked;
  Carrier* other = nullptr;
  const auto used = [&](std::uint64_t page, std::uint64_t owner) {
    if (asked != owner) other = CarrierOf(owner);
    asked = owner;
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
  const bool is_inherited = states_->IsInherited(address);
  // Who stays in the cache has no use for pages of others. In partial code neither, whose
  // instructions are checked where they meet them: ocean of bench/programs with four threads took
  // 28 s of processor time, and twice as many pages changed hands, instead of 24.
  const bool adaptive = states_->policy() == SharingPolicy::kAdaptive;
  const bool takes = adaptive && !carrier.partial && (carrier.native() || carrier.leaves_soon) &&
                     !MayHaveAliases(region->second);
  if (adaptive) states_->SetTime(rules_.time());
  const Touch touch =
      states_->OnTouch(thread, address, write, region->first, region->second.end, used, takes);
  if (touch.hide) Hide(touch.run);
  if (touch.revoke && touch.revoke->state == PageState::kOrphaned) {
    Evict(*touch.revoke);
  } else if (touch.revoke) {
    Carrier* const owner = CarrierOf(touch.revoke->owner);
    if (is_inherited && owner != nullptr)
      owner->inherited_in_vain += touch.revoke->end - touch.revoke->start;
    const bool only_read = states_->policy() == SharingPolicy::kWriteShared && !write &&
                           touch.run.state == PageState::kShared && owner != nullptr &&
                           !Written(*owner, *touch.revoke);
    const bool stays_shared = touch.run.state == PageState::kShared && !only_read;
    const bool unseen = owner == nullptr || Revoke(*owner, *touch.revoke, stays_shared);
    if (unseen &&
        (touch.run.state == PageState::kShared || states_->policy() == SharingPolicy::kAdaptive) &&
        MayOrderUnseen())
      rules_.on_ownership_lost(touch.revoke->owner, {*touch.revoke}, write ? 0 : rip);
    if (only_read) {
      states_->MakeReadOnly(touch.run.start, touch.run.end);
      return PageState::kReadOnly;
    }
    // Who comes for so many at once has been using one new page after the other, and will use
    // these.
    if (adaptive && touch.run.state != PageState::kPrivate &&
        touch.run.end - touch.run.start >= kDense) {
      MapRun(carrier, touch.run, kMirrorOffset, true, write);
    }
  }
  const bool claims = PageStates::IsFree(before);
  if (touch.run.state == PageState::kTaken) {
    if (before.state != PageState::kTaken) carrier.taken.push_back(touch.run);
    return PageState::kShared;
  }
  if (touch.run.state == PageState::kPrivate && (claims || before.owner != thread)) {
    // Others may have released something here, before they gave the pages up or ended.
    rules_.on_claimed(thread, touch.run);
    carrier.to_open.push_back(touch.run);
    if (claims && MayHaveAliases(region->second) && OwnsPages()) {
      // It may be mapped elsewhere, too.
      states_->Share(touch.run.start, touch.run.end);
      return PageState::kShared;
    }
    if (carrier.native() || adaptive) PrepareWalk(carrier, touch.run, write, region);
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
  MapRun(carrier, claimed, carrier.native() ? 0 : kMirrorOffset, true);
}

FaultVerdict AddressSpace::MapTouched(Carrier& carrier, std::uint64_t address, bool write,
                                      RegionMap::iterator region, std::uint64_t rip) {
  if (TouchTracked(carrier, address, write, region, rip) == PageState::kShared)
    return FaultVerdict::kShared;
  // As much as a claim may be long, to either side.
  const std::uint64_t block = AlignDown(address, kLargePageSize);
  const PageRun run = states_->Find(address, std::max(region->first, block),
                                    std::min(region->second.end, block + 2 * kLargePageSize));
  if (run.state == PageState::kReadOnly) carrier.to_open.push_back(run);
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

// Takes pages out of all threads' tables, but for that of one if it is given.
void AddressSpace::Hide(const PageRun& run, const Carrier* but) {
  UsedPages used;
  machine_.ForEachCarrier([&](Carrier& carrier) {
    if (&carrier != but) used.Add(carrier.ClearClosed(run.start, run.end));
  });
  DropTranslations(used);
}

// What shared pages are used for, which is in the code cache, is to be seen anew. They stay in the
// mirrors: to be used again there takes an exit of KVM's own only.
void AddressSpace::Watch(const PageRun& run) {
  UsedPages used;
  machine_.ForEachCarrier(
      [&](Carrier& carrier) { used.Add(carrier.ForgetMirrorUse(run.start, run.end)); });
  DropTranslations(used);
}

// Native code of the carrier's thread has met a shared page. If it is the only one that has used
// the page since such a meeting last, or nobody has written to it, it need not meet it again.
// Otherwise what the page is used for is watched anew.
bool AddressSpace::Reopen(Carrier& carrier, std::uint64_t page, bool write,
                          RegionMap::iterator region) {
  // In partial code the instruction may as well be checked from now on. Pages that change hands
  // again and again would take more: barnes of bench/programs 16.0 s of processor time instead of
  // 9.2, of which four looks instead of two make no difference.
  constexpr std::uint8_t kMostLooks = 2;
  const auto looks_at = [&](std::uint64_t at) -> std::uint8_t& {
    return looks_[at / kPageSize % looks_.size()];
  };
  if (carrier.partial && (looks_at(page) >= kMostLooks || MayHaveAliases(region->second))) {
    carrier.met_busy = true;
    return false;
  }
  // Without a mirror nobody knows who uses it.
  if (MayHaveAliases(region->second) || Collides(page, kMirrorOffset)) return false;
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
    Watch(run);
  } else {
    Hide(run, use == Use::kOwn ? &carrier : nullptr);
  }
  for (std::uint64_t at = run.start; at < run.end; at += kPageSize)
    looks_at(at) = static_cast<std::uint8_t>(std::min(looks_at(at) + 1, 255));
  if (use == Use::kBusy) {
    carrier.met_busy = looks_at(page) >= kMostLooks;
    return false;
  }
  if (use == Use::kOwn) {
    states_->SetTime(rules_.time());
    states_->Give(run.start, run.end, thread);
    carrier.to_open.push_back(run);
    constexpr std::size_t kMostLeases = 256;
    run.state = PageState::kPrivate;
    if (run.end - run.start >= kDense) {
      MapRun(carrier, run, 0, true);
      if (carrier.leased.size() == kMostLeases) carrier.leased.erase(carrier.leased.begin());
      carrier.leased.push_back(run);
      for (std::uint64_t block = run.start / kLeaseBlock; block <= (run.end - 1) / kLeaseBlock;
           ++block) {
        std::atomic<std::uint64_t>& last = lease_ends_[block % lease_ends_.size()];
        last = std::max(last.load(), carrier.lease_end.load());
      }
    }
  } else {
    states_->MakeReadOnly(run.start, run.end);
  }
  reopened_ += (run.end - run.start) / kPageSize;
  return true;
}

// Where the page at `address` is about to become the carrier's thread's, or everybody's.
void AddressSpace::CatchUp(std::unique_lock<std::mutex>& lock, Carrier& carrier,
                           std::uint64_t address) {
  if (!states_ || !OwnsPages() || !rules_.catch_up) return;
  const auto it = FindRegion(address);
  if (it == regions_.end() || !it->second.Trackable()) return;
  const PageRun run = states_->Find(address, it->first, it->second.end);
  const bool claims = PageStates::IsFree(run);
  if (!claims && (!PageStates::HasOwner(run) || run.owner == carrier.thread_page().logical_thread))
    return;
  constexpr unsigned kMostTimes = 8;
  for (unsigned i = 0; i == 0 || (i < kMostTimes && rules_.is_catching_up()); ++i) {
    lock.unlock();
    rules_.catch_up(claims);
    lock.lock();
  }
}

std::uint64_t AddressSpace::LeaseEnd(const Carrier& carrier, GuestVirtual address) {
  const std::uint64_t last = lease_ends_[address.value / kLeaseBlock % lease_ends_.size()];
  if (last == 0 || last <= Nanoseconds(CLOCK_MONOTONIC)) return 0;
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

std::vector<Range> AddressSpace::CheckedParts(Carrier& carrier, std::uint64_t address,
                                              std::uint64_t size, bool write) {
  std::unique_lock lock(mutex_);
  std::vector<Range> parts;
  if (!states_ || size > kUserAddressEnd || address > kUserAddressEnd - size) return parts;
  const std::uint64_t end = address + size;
  for (std::uint64_t at = address; at < end;) {
    const std::uint64_t next = std::min(end, AlignDown(at, kPageSize) + kPageSize);
    const auto region = FindRegion(at);
    PageState state = PageState::kUntracked;
    if (region != regions_.end() && region->second.Trackable())
      state = TouchTracked(carrier, at, write, region, 0);
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
  lock.unlock();
  if (carrier.native()) TellOpened(carrier);
  return parts;
}

void AddressSpace::OpenOwn(Carrier& carrier) {
  if (!carrier.leased.empty() || !carrier.taken.empty()) {
    const std::lock_guard lock(mutex_);
    carrier.leased.clear();
    const std::uint64_t thread = carrier.thread_page().logical_thread;
    for (const PageRun& taken : std::exchange(carrier.taken, {})) {
      for (const PageRun& run : states_->KeepTaken(taken.start, taken.end, thread)) {
        MapRun(carrier, run, 0, taken.end - taken.start >= kDense);
        carrier.to_open.push_back(run);
      }
    }
  }
  TellOpened(carrier);
}

// Without the mutex, for all that is queued is handled first. If others take pages meanwhile, the
// thread comes after more than it must.
void AddressSpace::TellOpened(Carrier& carrier) {
  for (const PageRun& run : std::exchange(carrier.to_open, {}))
    rules_.on_opened(carrier.thread_page().logical_thread, run);
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

void AddressSpace::Seal(Carrier& carrier, const Range& stack) {
  const std::lock_guard lock(mutex_);
  if (!states_) return;
  SplitHugePages();
  JudgeInheritance(carrier);
  const std::uint64_t thread = carrier.thread_page().logical_thread;
  const std::vector<PageRun> sealed = states_->Seal(thread);
  if (sealed.empty()) return;
  const auto stays = [&](const PageRun& run) {
    return run.end - run.start >= kOrphanedRun &&
           (run.end <= stack.start || run.start >= stack.end);
  };
  std::uint64_t staying = 0;
  for (const PageRun& run : sealed) staying += stays(run) ? run.end - run.start : 0;
  const bool orphans = staying >= kOrphanedBytes && MayOrphan();
  if (orphans) carrier.orphaned_by = thread;
  std::vector<PageRun> unseen;
  for (const PageRun& run : sealed) {
    bool used = false;
    if (orphans && stays(run)) {
      used = MayHaveUsedNatively(carrier, run);
      states_->Orphan(run.start, run.end, carrier.number());
    } else {
      used = Revoke(carrier, run);
    }
    if (used) unseen.push_back(run);
  }
  if (!unseen.empty() && MayOrderUnseen()) rules_.on_ownership_lost(thread, unseen, 0);
}

void AddressSpace::Inherit(Carrier& carrier) {
  const bool inherits = std::exchange(carrier.orphaned_by, std::nullopt).has_value();
  if (inherits) rules_.catch_up(true);
  const std::lock_guard lock(mutex_);
  carrier.inherited = carrier.inherited_in_vain = 0;
  carrier.generation = inherits ? carrier.generation + 1 : 0;
  if (!inherits) return;
  const std::uint64_t thread = carrier.thread_page().logical_thread;
  for (const PageRun& run : states_->Inherit(carrier.number(), thread)) {
    // As if it had touched all of them.
    rules_.on_claimed(thread, run);
    carrier.to_open.push_back(run);
    carrier.inherited += run.end - run.start;
  }
}

void AddressSpace::Renew(Carrier& carrier) {
  const std::lock_guard lock(mutex_);
  if (!states_) return;
  SplitHugePages();
  const std::uint64_t thread = carrier.thread_page().logical_thread;
  const bool written = states_->policy() == SharingPolicy::kWriteShared;
  // KVM is told of pages that lie so far apart by themselves.
  constexpr std::uint64_t kGap = 64 * kPageSize;
  std::vector<PageRun> unseen;
  UsedPages all;
  states_->Renew(thread, [&](const PageRun& run) {
    const bool known = NativeUseIsKnown(carrier, run);
    const auto [natively, used] = carrier.ForgetUse(run.start, run.end, written);
    if (carrier.was_native() && (!known || natively)) {
      if (!unseen.empty() && unseen.back().end == run.start) {
        unseen.back().end = run.end;
      } else {
        unseen.push_back(run);
      }
    }
    if (!used.any()) return false;
    if (all.any() && used.first > all.last + kGap) DropTranslations(std::exchange(all, {}));
    all.Add(used);
    return true;
  });
  DropTranslations(all);
  if (!unseen.empty() && MayOrderUnseen()) rules_.on_ownership_lost(thread, unseen, 0);
}

void AddressSpace::ForgetStates(Carrier* left) {
  const std::lock_guard lock(mutex_);
  if (!states_) return;
  std::optional<std::uint64_t> stays;
  if (left != nullptr) stays = left->thread_page().logical_thread;
  for (const PageRun& run : states_->Reset(stays)) {
    if (PageStates::HasOwner(run)) {
      if (Carrier* const owner = CarrierOf(run.owner)) Revoke(*owner, run);
    } else if (run.state == PageState::kOrphaned) {
      Evict(run);
    } else if (OwnsPages()) {
      Hide(run);
    }
  }
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

}  // namespace trapline
