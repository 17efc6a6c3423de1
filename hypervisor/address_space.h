// The program's address space: which ranges are the program's, their protection, and the page
// tables' contents.
//
// The program and the monitor share one host address space. Everything the program maps is recorded
// here as a region; memory without a region belongs to the monitor (or to nobody) and does not
// exist for the program. Page tables of all carriers mirror the regions' protections and are filled
// on demand.
//
// Rule for taking rights away: first the guest's entries are cleared in every page table, then the
// host's own mapping changes, whose mmu notifier makes KVM drop cached translations.
//
// All public members are thread-safe. System-call members take and return what the Linux system
// call of the same name does: a value, or -errno.
#pragma once

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "hypervisor/clock.h"
#include "hypervisor/machine.h"
#include "hypervisor/memory_limits.h"
#include "hypervisor/mmu_notifier.h"
#include "hypervisor/range.h"
#include "shadow-pages/page_states.h"

namespace trapline {

struct Region {
  std::uint64_t end = 0;
  int protection = 0;  // PROT_ bits
  bool shared = false;
  bool grows_down = false;
  std::uint64_t growth_limit = 0;  // lowest address a growing region may reach
  bool growth_reserved = false;    // the host address range down to there is held already
  bool borrowed = false;  // the vDSO: the monitor uses it too, so the host mapping stays as it is
  // Of a file whose code's accesses do not count (TrackingRules), but for some parts of it.
  bool untracked_code = false;
  // The program serves its page faults itself (userfaultfd).
  bool served = false;
  // Shared memory that may be mapped at several places: which, and where in it the region starts.
  std::uint64_t object = 0;  // 0: none
  std::uint64_t offset = 0;  // bytes

  // Whether accesses to the region can race: read-only memory is only read, and what can be
  // executed cannot be hidden from a thread that runs it. Nor is it known of pages that come one by
  // one.
  bool Trackable() const {
    return (protection & PROT_WRITE) != 0 && (protection & PROT_EXEC) == 0 && !borrowed && !served;
  }
  // Whether it is code that cannot be written to, here or where the same memory is mapped, too (by
  // which just-in-time compilers write theirs). Other code changes without a word.
  bool ReadOnlyCode() const {
    return (protection & PROT_EXEC) != 0 && (protection & PROT_WRITE) == 0 && !shared;
  }
  // Whether the accesses of all code here count.
  bool IsTrackedCode() const { return !untracked_code && !borrowed; }
};

enum class FaultVerdict {
  kMapped,         // the entry is there now: retry the access
  kShared,         // the page is shared: the access must be checked (kClosed only)
  kUntrackedCode,  // untracked code touches a page that is not the thread's: it runs in kOpen
  kTrackedCode,    // tracked code is about to run in kOpen: it runs in kClosed
  kNotMapped,      // SEGV_MAPERR
  kNotPermitted,   // SEGV_ACCERR
  kBusError,       // BUS_ADRERR: beyond the end of a mapped file
  kMemoryFailure,  // BUS_MCEERR_AR
  kNoMirror,       // the access is let through with one step (mirrors only)
};

// How many 4 KiB pages were touched by one carrier's threads only, and by several. Counted when
// page-use statistics are on.
struct PageUse {
  std::uint64_t single = 0;
  std::uint64_t several = 0;
};

// [from, from + length) is known by `to` from now on.
struct ViewMove {
  std::uint64_t from, to, length;
};

// What tracking is to look at, and whom it tells about memory whose history ends.
struct TrackingRules {
  SharingPolicy policy = SharingPolicy::kExact;
  // Whether the accesses of a mapped file's code do not count (LARD's rule 1: libc and the like).
  std::function<bool(const std::string& path)> is_untracked_module;
  // ExecutionObserver::OnCodeMapped; with the mutex held.
  std::function<std::vector<Range>(const std::string& path, const Range& code, std::uint64_t offset,
                                   bool counts)>
      on_code_mapped = [](const auto&...) { return std::vector<Range>(); };
  // [start, end) is about to be unmapped or becomes fresh memory; called with the mutex held.
  std::function<void(std::uint64_t start, std::uint64_t end)> on_fresh_memory;
  // Deals with all that the threads have told so far, so that the next two, which do so with the
  // mutex held, have little left. Without it. `claims`: nobody has had the pages in question.
  std::function<void(bool claims)> catch_up;
  // Whether another thread is doing so. From anywhere.
  std::function<bool()> is_catching_up;
  // These private pages of `owner` are no longer: they were used by it, unseen, until now, when the
  // load at `load` came (0: something else, or it is not known). With the mutex held; never under
  // SharingPolicy::kExact.
  std::function<void(std::uint64_t owner, const std::vector<PageRun>& runs, std::uint64_t load)>
      on_ownership_lost;
  // Whether the program's code that counts, all of which this is, may order threads unseen: else
  // nobody need know who has lost pages. With the mutex held.
  std::function<bool(const std::vector<Range>& code)> may_order = [](const auto&) { return true; };
  // Pages that nobody else uses become private to `owner`; likewise.
  std::function<void(std::uint64_t owner, const PageRun& run)> on_claimed;
  // `thread`, the calling one, may read or write natively what others wrote on these pages, once
  // this returns. Without the mutex.
  std::function<void(std::uint64_t thread, const PageRun& run)> on_opened;
  // [from, from + length) is now at `to`; with the mutex held.
  std::function<void(std::uint64_t from, std::uint64_t to, std::uint64_t length)> on_moved;
  // The address by which memory that is mapped at several places is known changes, at the moment
  // at which `publish` is called; likewise.
  std::function<void(const std::vector<ViewMove>& moves, const std::function<void()>& publish)>
      on_views_changed;
  // The program's shared mapping of [start, end) is about to end; likewise.
  std::function<void(std::uint64_t start, std::uint64_t end)> on_shared_memory_ends;
  // Milliseconds, from anywhere.
  std::function<std::uint64_t()> time = [] { return Nanoseconds(CLOCK_MONOTONIC) / 1'000'000; };
};

class AddressSpace {
 public:
  // `count_page_use`: map page by page with the accessed bit clear, so that use can be told apart.
  AddressSpace(Machine& machine, const MemoryLimits& limits, bool count_page_use);

  // --- system calls
  long Mmap(std::uint64_t address, std::uint64_t length, int protection, int flags, int fd,
            std::uint64_t offset);
  long Munmap(std::uint64_t address, std::uint64_t length);
  long Mprotect(std::uint64_t address, std::uint64_t length, int protection);
  long Mremap(std::uint64_t address, std::uint64_t old_length, std::uint64_t new_length, int flags,
              std::uint64_t new_address);
  long Madvise(std::uint64_t address, std::uint64_t length, int advice);
  long Brk(std::uint64_t address);
  long Shmat(int id, std::uint64_t address, int flags);
  long Shmdt(std::uint64_t address);

  // --- the limits of MemoryLimits
  static bool IsOwnLimit(int resource);
  rlimit GetLimit(int resource);
  long SetLimit(int resource, const rlimit& limit);
  MemoryLimits limits() const;

  // --- loading
  // Declares host memory that exists already (vDSO, a segment mapped by the loader) to be the
  // program's.
  void Adopt(std::uint64_t start, std::uint64_t end, const Region& region);
  void SetBreak(std::uint64_t start);
  // A downward-growing stack of at most `limit` bytes, of which the top `initial` are there at
  // once. Returns its top, 0 when there is no room.
  std::uint64_t CreateStack(std::uint64_t limit, std::uint64_t initial, bool executable);
  // True when no mapping of anybody lies in the range.
  static bool IsFree(std::uint64_t start, std::uint64_t end);

  // Of the page table that a carrier's thread runs on in `view`, complete but for the program's
  // memory. A view is made when first asked for, by the thread or by others that look whether it
  // uses a page: hence by way of this, but for those who hold the mutex.
  GuestPhysical RootOf(Carrier& carrier, View view);
  // Whether that table, the one that the calling thread runs on, has an entry for `address`,
  // whatever it permits. Takes no lock.
  bool IsMapped(Carrier& carrier, View view, GuestVirtual address);

  // --- faults
  // A fault in `view`, the one the carrier runs in; `rip` tells tracked code from untracked.
  FaultVerdict Resolve(Carrier& carrier, View view, GuestVirtual address, bool write, bool fetch,
                       std::uint64_t rip);
  // When the lease ends that another thread has on the page (Carrier::lease_end); 0: there is none.
  std::uint64_t LeaseEnd(const Carrier& carrier, GuestVirtual address);
  // A fault at the mirror of `address`, in kClosed, by the program's instruction at `rip`; 0: it is
  // not known.
  FaultVerdict ResolveMirror(Carrier& carrier, GuestVirtual address, bool write,
                             std::uint64_t rip = 0);
  // KVM could not reach the host page behind a present entry (EFAULT). Makes the entry absent, so
  // that the access faults again with its address, and has that fault looked at closely.
  // `physical`: where, if known.
  void Distrust(Carrier& carrier, std::optional<GuestPhysical> physical);

  // The program has written to code by way of a file, whatever it may do to the memory itself.
  void OnCodeWritten(std::uint64_t start, std::uint64_t end);
  // Ranges of code that are no longer what they were, since the last call.
  std::vector<Range> TakeChangedCode();
  // Changes before any code does that is not writable. For whoever has read some. Without the
  // mutex.
  std::uint64_t code_version() const { return code_version_.load(std::memory_order_acquire); }

  // --- tracking
  // Before the program is loaded.
  void SetTrackingRules(TrackingRules rules);
  // From now on, whatever the policy was; before the program runs.
  void ShareEveryPage();
  bool Tracks() const { return states_.has_value(); }
  // Only with tracking rules.
  SharingPolicy policy() const { return states_->policy(); }
  bool IsUntrackedModule(const std::string& path) const {
    return states_ && rules_.is_untracked_module(path);
  }
  // The parts of [address, address + size) that must be checked, after the carrier's thread has
  // touched all of it: those on shared pages and, if the policy is kAdaptive and the thread's code
  // not hot, on private ones.
  std::vector<Range> CheckedParts(Carrier& carrier, std::uint64_t address, std::uint64_t size,
                                  bool write);
  // The one address by which memory that is mapped at several places is known. Takes no lock that
  // anything else is asked for under.
  std::uint64_t Canonical(std::uint64_t address) const;
  // False: each address is its own.
  bool has_aliases() const { return has_aliases_.load(std::memory_order_acquire); }
  // The same for a range, which may fall apart.
  void ForEachCanonical(std::uint64_t address, std::uint64_t size,
                        const std::function<void(const Range&)>& visit) const;
  // The accesses of the code in these whole pages do not count.
  void SetUntrackedCode(std::uint64_t start, std::uint64_t end);
  // Whether the code at `address` is tracked.
  bool IsTrackedCode(std::uint64_t address);
  // The parts of [start, end) whose accesses count though those of the code around them do not.
  std::vector<Range> CountingParts(std::uint64_t start, std::uint64_t end);
  // The thread, on its way out of the code cache, may use natively what became its own there.
  void OpenOwn(Carrier& carrier);
  // The thread ends: its private pages become untouched, and absent in its carrier's table. But
  // where it had many side by side, beside its `stack`, these stay there for the next one
  // (PageState::kOrphaned).
  void Seal(Carrier& carrier, const Range& stack);
  // A thread begins on the carrier: what is orphaned there becomes its own. Before it runs.
  void Inherit(Carrier& carrier);
  // The thread makes another one: its private pages count as not used yet (PageStates::Renew).
  void Renew(Carrier& carrier);
  // A quiet moment: all pages become untouched, but for the private ones of `left`'s thread.
  void ForgetStates(Carrier* left = nullptr);
  // The user's or the runtime's word: accesses to the pages that lie wholly inside do not count.
  void Untrack(std::uint64_t start, std::uint64_t end);
  void Track(std::uint64_t start, std::uint64_t end);
  std::uint64_t CountPages(PageState state);
  std::uint64_t reopened_pages() const { return reopened_; }
  // How often threads have lost pages that they had used natively; whether that orders them with
  // their next owners (TrackingRules::may_order).
  std::uint64_t unseen_losses() const { return unseen_losses_; }
  bool may_order_unseen() const { return may_order_; }
  // Some code of the program's is atomic.
  void NoteOrderingCode() { may_order_ = true; }

  // The program is about to use userfaultfd.
  void OnProgramWatchesMemory();
  // ... and to serve the page faults in [start, end) itself: reading there may wait for it.
  void OnProgramServes(std::uint64_t start, std::uint64_t end);
  // In a child of fork, whose descriptors may be its parent's, too.
  void OnForkedChild(bool shared_descriptors);

  // --- questions
  std::optional<Region> Find(std::uint64_t address) const;
  std::map<std::uint64_t, Region> Regions() const;
  // The shared ones.
  std::vector<Range> SharedRegions() const;
  std::uint64_t break_start() const { return break_start_; }
  Range stack() const;
  // Unless it is not counted.
  std::optional<PageUse> CountPageUse();
  bool counts_page_use() const { return count_page_use_; }

  std::mutex& mutex() { return mutex_; }  // held across fork

 private:
  using RegionMap = std::map<std::uint64_t, Region>;

  // --- address_space.cpp: which memory is the program's
  RegionMap::iterator FindRegion(std::uint64_t address);
  // visit(const Range& part, region_start, const Region&) for each region that has part of
  // [start, end), from the lowest on.
  template <class Visit>
  void ForEachRegion(std::uint64_t start, std::uint64_t end, Visit&& visit) const;
  std::vector<Range> CoveredParts(std::uint64_t start, std::uint64_t end) const;
  std::vector<Range> OwnParts(std::uint64_t start, std::uint64_t end) const;
  bool HasClientRequests(const Region& region) const;
  bool Borrowed(std::uint64_t start, std::uint64_t end) const;
  bool Covered(std::uint64_t start, std::uint64_t end) const;
  bool ClaimGaps(std::uint64_t start, std::uint64_t end, std::vector<Range>& claimed);
  void Split(std::uint64_t address);
  void Insert(std::uint64_t start, const Region& region);
  void Remove(std::uint64_t start, std::uint64_t end);
  void NoteChangedCode(std::uint64_t start, std::uint64_t end);
  bool TrackedCodeAt(std::uint64_t address);
  std::vector<Range> CountingPartsIn(std::uint64_t start, std::uint64_t end) const;
  void NoteCode(std::uint64_t start, const Region& region, const std::string& path,
                std::uint64_t offset);
  bool TryGrow(std::uint64_t address);

  // --- page_faults.cpp: page tables
  void ClearEntries(std::uint64_t start, std::uint64_t end);
  UsedPages ClearViews(Carrier& carrier, std::uint64_t start, std::uint64_t end);
  void ClearServed(std::uint64_t start, std::uint64_t end);
  std::optional<FaultVerdict> AwaitServed(std::uint64_t address, bool write);
  FaultVerdict ResolveLocked(Carrier& carrier, View view, GuestVirtual address, bool write,
                             bool fetch, std::uint64_t rip);
  FaultVerdict ResolveMirrorLocked(Carrier& carrier, GuestVirtual address, bool write,
                                   std::uint64_t rip);
  void HarvestAccess(Carrier& carrier, std::uint64_t start, std::uint64_t end);
  // Low memory may lie where the mirror of high memory does. View::kClosed then has neither there:
  // the low one is used by its own mirror only, in the code cache, the high one natively only.
  // visit(const Range&) for the parts of `part`, of a region, that do not, if they are to be at
  // their own address plus `offset`.
  template <class Visit>
  void ForEachApart(const Range& part, std::uint64_t region_start, const Region& region,
                    std::uint64_t offset, Visit&& visit) const;
  bool Collides(std::uint64_t address, std::uint64_t offset);
  bool CollidesWithMonitor(std::uint64_t start, std::uint64_t size, int protection) const;
  static bool IsReservation(std::uint64_t start, const Region& region);
  void ClearCollisions(std::uint64_t start, const Region& region);
  void Populate(Carrier& carrier, View view, std::uint64_t block, std::uint64_t block_end,
                std::uint64_t offset = 0);
  void PopulateMirror(Carrier& carrier, std::uint64_t address, bool tracked);
  void TryHugePage(std::uint64_t block, std::uint64_t region_start);
  void SplitHugePages();

  // --- page_ownership.cpp
  bool OwnsPages() const { return states_->policy() != SharingPolicy::kExact; }
  void MapRun(Carrier& carrier, const PageRun& run, std::uint64_t offset = 0, bool used = false,
              bool written = false);
  Carrier* CarrierOf(std::uint64_t logical_thread);
  bool Revoke(Carrier& carrier, const PageRun& run, bool keeps_mirror = false);
  void JudgeInheritance(const Carrier& carrier);
  bool MayOrphan();
  void Evict(const PageRun& orphaned);
  void DropTranslations(const UsedPages& pages);
  bool NativeUseIsKnown(Carrier& carrier, const PageRun& run);
  bool MayHaveUsedNatively(Carrier& carrier, const PageRun& run);
  bool Written(Carrier& owner, const PageRun& run);
  PageState TouchTracked(Carrier& carrier, std::uint64_t address, bool write,
                         RegionMap::iterator region, std::uint64_t rip);
  void PrepareWalk(Carrier& carrier, const PageRun& claimed, bool write,
                   RegionMap::iterator region);
  FaultVerdict MapTouched(Carrier& carrier, std::uint64_t address, bool write,
                          RegionMap::iterator region, std::uint64_t rip);
  void MarkUsed(Carrier& carrier, std::uint64_t address);
  void Hide(const PageRun& run, const Carrier* but = nullptr);
  void Watch(const PageRun& run);
  void TellOpened(Carrier& carrier);
  void CatchUp(std::unique_lock<std::mutex>& lock, Carrier& carrier, std::uint64_t address);
  bool Reopen(Carrier& carrier, std::uint64_t page, bool write, RegionMap::iterator region);
  void Freshen(std::uint64_t start, std::uint64_t end);
  bool MayOrderUnseen();

  // --- memory_aliases.cpp: memory that is mapped at several places
  void FindAliases();
  // Whether the region's memory may be known by other addresses, too.
  bool MayHaveAliases(const Region& region) const { return watches_aliases_ && region.object != 0; }
  void ShareView(std::uint64_t start, std::uint64_t end);
  std::vector<Range> OnlyViews(std::uint64_t start, std::uint64_t end);

  // --- memory_system_calls.cpp
  bool ExceedsLimits(std::uint64_t bytes, int protection, bool shared) const;
  void EndShared(std::uint64_t start, std::uint64_t end);
  long MunmapLocked(std::uint64_t address, std::uint64_t end);
  long MprotectLocked(std::uint64_t address, std::uint64_t end, int protection);

  Machine& machine_;
  const bool count_page_use_;
  mutable std::mutex mutex_;
  MmuNotifier notifier_;
  RegionMap regions_;
  std::map<std::uint64_t, std::uint64_t> counting_parts_;  // of untracked code: start, end
  std::vector<std::uint64_t> huge_blocks_;                 // on huge pages of the host's
  std::uint64_t break_start_ = 0, break_ = 0;
  std::uint64_t stack_top_ = 0;
  MemoryLimits limits_;
  TrackingRules rules_;
  std::optional<PageStates> states_;  // nothing: no tracking
  // How often pages, by the lower part of their numbers, were looked at by Reopen; up to 255.
  std::vector<std::uint8_t> looks_ = std::vector<std::uint8_t>(1 << 16);
  std::unordered_map<std::uint64_t, unsigned> objects_;  // object -> how often it was mapped
  std::uint64_t own_objects_ = 0;                        // that no file or segment gives a number
  // Pages of objects that are mapped at several places -> the place they are known by.
  struct Alias {
    std::uint64_t end, canonical;
  };
  bool watches_aliases_ = false;  // an object was mapped twice
  std::atomic<bool> has_aliases_{false};
  mutable std::mutex aliases_mutex_;
  std::map<std::uint64_t, Alias> aliases_;
  // By object and offset: how far, and by which address it is known. With the mutex.
  std::map<std::uint64_t, std::map<std::uint64_t, Alias>> homes_;
  // By the number of a block of pages: no lease on any of these ends later. Faults ask, and most
  // pages have none.
  static constexpr std::uint64_t kLeaseBlock = 16 * kPageSize;
  std::array<std::atomic<std::uint64_t>, 1024> lease_ends_{};
  std::atomic<std::uint64_t> reopened_{0};  // shared pages that became private or read-only
  std::atomic<bool> serves_{false};         // there has been a region that is `served`
  std::atomic<bool> code_changed_{false};
  std::atomic<std::uint64_t> code_version_{0};
  std::vector<Range> changed_code_;
  std::uint64_t new_code_ = 1, ordering_asked_ = 0;  // how often code came; that when last asked
  // How many threads to end next leave nothing orphaned, since what was had been of no use; how
  // many in all.
  unsigned orphan_pause_left_ = 0, orphan_pause_ = 0;
  std::atomic<std::uint64_t> unseen_losses_{0};
  std::atomic<bool> may_order_{false};                   // TrackingRules::may_order, once it is so
  std::map<std::uint64_t, std::uint64_t> shm_segments_;  // address -> bytes
  // Page number -> carrier that touched it, or kSeveral. From entries that are gone.
  std::unordered_map<std::uint64_t, unsigned> page_users_;
};

template <class Visit>
void AddressSpace::ForEachRegion(std::uint64_t start, std::uint64_t end, Visit&& visit) const {
  auto it = regions_.upper_bound(start);
  if (it != regions_.begin()) --it;
  for (; it != regions_.end() && it->first < end; ++it) {
    const Range part{std::max(start, it->first), std::min(end, it->second.end)};
    if (part.start < part.end) visit(part, it->first, it->second);
  }
}

template <class Visit>
void AddressSpace::ForEachApart(const Range& part, std::uint64_t region_start, const Region& region,
                                std::uint64_t offset, Visit&& visit) const {
  const bool low = part.start < kLowMirrorStart;
  const bool high = part.end > kMirroredLow;
  std::uint64_t at = part.start;
  if ((offset == 0 ? low : high) && machine_.shows_code_cache() &&
      !IsReservation(region_start, region)) {
    const std::uint64_t other = low ? kMirroredLow : kMirrorOffset;
    const std::uint64_t from = low ? part.start : std::max(part.start, kMirroredLow);
    ForEachRegion(from + other, part.end + other,
                  [&](const Range& taken, std::uint64_t start, const Region& there) {
                    if (there.protection == PROT_NONE || IsReservation(start, there)) return;
                    if (at < taken.start - other) visit(Range{at, taken.start - other});
                    at = taken.end - other;
                  });
  }
  if (at < part.end) visit(Range{at, part.end});
}

}  // namespace trapline
