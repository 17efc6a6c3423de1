// The code cache (translator/code_cache.h) as the guest runs it: in memory that the monitor and all
// threads have at the same addresses, below 2 GiB, executable in View::kClosed.
//
// It has two halves for each Coverage, each a CodeCache, and new code goes into one of them, the
// present one. When that is full, the other one becomes the present one, emptied, and the full one
// is unlinked: the threads inside leave it at their next branch. A half is emptied only when no
// thread is inside any more, which is known because a thread gets into the cache, out of it and
// from one half to the other by this class alone.
//
// Thread-safe. Takes AddressSpace's and Tracking's mutex while it holds its own.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "guest-agent/layout.h"
#include "hypervisor/address_space.h"
#include "hypervisor/cache_admission.h"
#include "hypervisor/redirects.h"
#include "translator/code_cache.h"

namespace trapline {

// How much code the cache holds, of both halves.
struct CodeCacheSize {
  static constexpr std::uint64_t kLeast = 4u << 20, kMost = TRAPLINE_CACHE_CODE_SIZE;
  static constexpr unsigned kFewestBlocks = 16;

  std::uint64_t bytes = kMost;  // in [kLeast, kMost]
  unsigned blocks = 0;  // at most about so many basic blocks, at least kFewestBlocks; 0: any
};

struct CodeCacheStatistics {
  CacheStatistics translated;  // since the program began
  std::uint64_t flushes = 0;   // times that all of the code was given up for new code
  std::uint64_t refused =
      0;  // times that code was not translated since a half could not be emptied
  std::uint64_t declined = 0;  // ... since it had not been asked for often enough (CacheAdmission)
};

// Full code checks every access of tracked code. Of partial code instructions that are hot, and
// have not met shared pages, are as they were: they reach the thread's own pages natively, and
// fault at others.
enum class Coverage : std::uint8_t { kFull, kPartial };

// In which stays in the cache a thread runs partial code; kLongStays:
// AdaptivePolicy::prefers_partial.
enum class PartialCode : std::uint8_t { kNever, kLongStays, kAlways };

class GuestCodeCache {
 public:
  struct Rules {
    bool filter = false;  // accesses that a thread has made before in its epoch need not be told of
    bool repeats = false;  // nor accesses that it repeats in later epochs (guest-agent/repeats.h)
    std::uint64_t repeats_after = 0;  // TrackOptions
    std::uint32_t settle_after = 0;   // TrackOptions
    bool sector_uses = false;         // with `repeats`: hot code need not tell of settled sectors
    bool biased_locks = false;  // with `repeats`: guest-agent/biased_locks.h, after as many events
    RedirectRule redirects = RedirectRule::kNever;
    PartialCode partial_code = PartialCode::kNever;
    CodeCacheSize size;
    std::uint32_t translate_after = 0;  // TrackOptions
    // Whether debug info calls the plain load or store at an address atomic.
    std::function<bool(std::uint64_t rip)> is_atomic;
    // Whether the code at an address must not run from the cache; none if empty.
    std::function<bool(std::uint64_t rip)> refuses;
    // Has all that threads have queued handled: sites are about to be used again.
    std::function<void()> drain;
  };
  // Throws KvmError when the memory cannot be had.
  GuestCodeCache(Machine& machine, AddressSpace& space, Rules rules);

  // Of a carrier's thread.
  static CacheThread& ThreadOf(Carrier& carrier) {
    return *static_cast<CacheThread*>(carrier.ThreadRegion(TRAPLINE_CACHE_THREAD));
  }
  // Makes the thread's part ready for a new thread.
  static void Reset(CacheThread& thread);
  // What the filter has seen need not hold any longer. The thread may be running.
  static void EndEpoch(CacheThread& thread);

  bool looks_for_repeats() const { return rules_.repeats; }
  std::uint64_t repeats_after() const { return rules_.repeats_after; }
  bool biases_locks() const { return rules_.biased_locks; }
  bool leaves_out_settled_sectors() const { return rules_.sector_uses; }
  std::uint32_t settle_after() const { return rules_.settle_after; }
  PartialCode partial_code() const { return rules_.partial_code; }

  // Whether `rip` is in the cache; its stubs too.
  bool Contains(std::uint64_t rip) const {
    return rip - CodeOf(Coverage::kFull) < SizeOf(Coverage::kFull) || IsPartial(rip);
  }
  bool IsPartial(std::uint64_t rip) const {
    return rip - CodeOf(Coverage::kPartial) < SizeOf(Coverage::kPartial);
  }
  Coverage CoverageOf(std::uint64_t rip) const {
    return IsPartial(rip) ? Coverage::kPartial : Coverage::kFull;
  }
  // Whether a thread that is out of the guest with this RIP left by CodeCache::exit_address() or by
  // leave_address().
  bool IsExit(std::uint64_t rip) const { return IsOut(rip, exit_offset_); }
  bool IsLeave(std::uint64_t rip) const { return IsOut(rip, leave_offset_); }

  // The cache address of the program's instruction at `rip`, where the thread goes on, in the
  // cache from now on. 0: it goes on outside; step the instruction, or let it run natively.
  // May wait some milliseconds for other threads to leave code that is to be given up.
  std::uint64_t Enter(CacheThread& thread, std::uint64_t rip, Coverage coverage = Coverage::kFull);
  // While partial code runs: what has become hot need no longer be checked there. Takes its time
  // only now and then.
  void UpdatePartial();
  // The program's instruction at `rip` meets shared pages: partial code checks it from now on.
  void NoteSharing(std::uint64_t rip);
  // How many there are.
  std::size_t sharing();
  // The same for a thread that is out of the guest by the exit at `rip`.
  struct Continuation {
    std::uint64_t target = 0;   // program address
    std::uint64_t address = 0;  // as Enter's; 0 also if it is not for the cache to go on (kStep)
    // Address of the branch by which it would go on, which the processor refuses: the target is
    // none.
    std::optional<std::uint64_t> refused;
    // Only if `may_decline`: it has not been asked for often enough to be translated
    // (CacheAdmission), and runs natively.
    bool declined = false;
  };
  Continuation Follow(CacheThread& thread, std::uint64_t rip, bool may_decline);
  // The thread has left the cache: its registers are the program's.
  void Leave(CacheThread& thread);

  // Where native code goes on in the cache without leaving the guest; null: nowhere.
  Redirects* redirects() { return redirects_.get(); }
  // Native code that faults at `rip` with `frames` on its stack, innermost first, gets to
  // `address`, which Enter has returned, by itself from now on. `redirect_version`:
  // redirects()->version() before Enter.
  void Redirect(std::uint64_t redirect_version, std::uint64_t rip, std::uint64_t rsp,
                std::uint64_t address, std::span<const CallFrame> frames);
  // A page fault has been told of.
  void CountPageFault();
  // The thread has been redirected into code of that generation.
  void OnRedirected(CacheThread& thread, std::uint64_t generation);

  // A thread that is in a system call for however long is outside meanwhile.
  struct Pause {
    std::uint64_t rip = 0;         // where the program goes on
    std::uint64_t generation = 0;  // of the code that the thread was in
    Coverage coverage = Coverage::kFull;
  };
  // `return_address`, in RCX, is in the cache. Nothing: the thread stays inside.
  std::optional<Pause> BeginPause(CacheThread& thread, std::uint64_t return_address);
  // Whether the thread may go back to its return address. False: that code is no more.
  bool EndPause(CacheThread& thread, const Pause& pause);

  // As CodeCache's, for a thread that is inside.
  std::optional<RegisterFile> Recover(const RegisterFile& registers, const CacheThread& thread);
  void Invalidate(std::span<const Range> ranges);

  CodeCacheStatistics statistics();

  std::mutex& mutex() { return mutex_; }  // held across fork
  // In the child of fork, whose only thread is outside.
  void ForgetThreads() { inside_.clear(); }

 private:
  struct Half {
    std::unique_ptr<CodeCache> cache;  // null: not used yet
    std::uint64_t generation = 0;      // grows by one each time a half becomes the present one
  };

  bool IsOut(std::uint64_t rip, std::uint64_t offset) const;
  // Where code of a coverage lies, and how much there may be of it.
  static std::uint64_t CodeOf(Coverage coverage) {
    return coverage == Coverage::kFull ? TRAPLINE_CACHE_CODE : TRAPLINE_PARTIAL_CODE;
  }
  std::uint64_t SizeOf(Coverage coverage) const {
    return coverage == Coverage::kFull ? size_.bytes : size_.bytes / 2;
  }
  std::uint64_t HalfSizeOf(Coverage coverage) const { return SizeOf(coverage) / 2; }
  Half& HalfAt(Coverage coverage, unsigned number) {
    return halves_[2 * static_cast<unsigned>(coverage) + number];
  }
  unsigned& PresentNumber(Coverage coverage) { return present_[static_cast<unsigned>(coverage)]; }
  Half& PresentHalf(Coverage coverage) { return HalfAt(coverage, PresentNumber(coverage)); }
  CacheAdmission& AdmissionTo(Coverage coverage) {
    return admissions_[static_cast<unsigned>(coverage)];
  }
  bool Declines(std::uint64_t rip, Coverage coverage);
  // Of the present half, made when first asked for.
  CodeCache& present(Coverage coverage);
  Half& HalfOf(std::uint64_t rip) {
    const Coverage coverage = CoverageOf(rip);
    return HalfAt(coverage, static_cast<unsigned>((rip - CodeOf(coverage)) / HalfSizeOf(coverage)));
  }
  void MakeHalf(Coverage coverage, unsigned number);
  Instrument InstrumentAt(Coverage coverage, std::uint64_t rip);
  bool IsHot(std::uint64_t rip) const;
  std::int16_t ColdChecks(std::uint64_t rip) const;
  // Translates by `translate`, after making room if need be.
  std::uint64_t Translate(std::unique_lock<std::mutex>& lock, CacheThread& thread,
                          Coverage coverage, const std::function<std::uint64_t()>& translate);
  bool MakeRoom(std::unique_lock<std::mutex>& lock, Coverage coverage);
  std::size_t ReadCode(std::uint64_t address, std::uint8_t* to, std::size_t size);
  struct CodeBlock;
  const CodeBlock& CodeBlockOf(std::uint64_t address);

  // Whether a thread is inside code of that generation, or of an earlier one.
  bool IsUsed(Coverage coverage, std::uint64_t generation);
  // Nobody is redirected to what the present half held up to now.
  void DropRedirects();

  Machine& machine_;
  AddressSpace& space_;
  const Rules rules_;
  const CodeCacheSize size_;
  const bool ring0_system_calls_;                     // SYSCALL arrives in ring 0
  std::uint64_t exit_offset_ = 0, leave_offset_ = 0;  // in each half
  std::mutex mutex_;
  std::array<Half, 4> halves_;  // two of each Coverage
  std::array<unsigned, 2> present_{};
  std::array<CacheAdmission, 2> admissions_;  // by Coverage
  // Program addresses of instructions that meet shared pages, and of those that are hot.
  std::unordered_set<std::uint64_t> sharing_, hot_;
  std::atomic<std::uint64_t> update_at_ = 0;  // by UpdatePartial (ns of CLOCK_MONOTONIC)
  std::uint64_t generation_ = 0;
  // Threads that are inside, and in code of which generation at the earliest.
  struct Inside {
    Coverage coverage;
    std::uint64_t generation;
  };
  std::unordered_map<const CacheThread*, Inside> inside_;
  // A part of a page as the present translation has found it: if it changes meanwhile, what is made
  // of it is invalidated afterwards.
  struct CodeBlock {
    static constexpr std::uint64_t kSize = 1024;
    bool readable = false;
    bool tracked = false;               // all of it counts, or
    std::vector<Range> counting_parts;  // these
    bool IsTracked(std::uint64_t rip) const {
      return tracked || std::any_of(counting_parts.begin(), counting_parts.end(), [&](auto& part) {
               return rip >= part.start && rip < part.end;
             });
    }
    std::array<std::uint8_t, kSize> bytes;
  };
  std::unordered_map<std::uint64_t, CodeBlock> code_blocks_;  // by number
  std::uint64_t flushes_ = 0, refused_ = 0;
  std::unique_ptr<Redirects> redirects_;
};

}  // namespace trapline
