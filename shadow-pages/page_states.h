// The life of a page (docs/detection.md): whose page it is decides whether an access traps, and
// nothing else does.
//
//   untouched --first touch by T--> private(T) --touch by another--> shared
//   private(T) --touch by U, who takes pages that have long been another's--> taken(U)
//   taken(U) --KeepTaken--> private(U);   taken(U) --touch by another--> shared
//   any --Untrack--> untracked;   any --Clear (unmapped)--> untouched
//   private(T) --T ends--> untouched, or orphaned(C), where C is the carrier of T
//   orphaned(C) --touch by U--> private(U);   orphaned(C) --next thread U of C--> private(U)
//   any but untracked --Reset (quiet moment)--> untouched, or as it was
//   private(T), unused since T made a thread (Renew) --touch by U--> private(U)
//   shared --Reopen, only T uses it now--> private(T)
//   shared --Reopen, nobody writes it now--> read-only --Share--> shared
//
// Pure bookkeeping: the caller writes the page tables and revokes what was taken away.
// Not thread-safe; addresses are multiples of 4 KiB unless they say "address".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "shadow-pages/address.h"
#include "shadow-pages/neighbourhood.h"
#include "shadow-pages/page_tenure.h"

namespace trapline {

enum class PageState : std::uint8_t {
  kUntouched,
  kPrivate,
  kShared,
  kReadOnly,  // was shared, and is only read now: by anyone natively, until somebody writes
  kTaken,     // as kShared, but nobody except its owner has used it since that has come for it
  kOrphaned,  // as kUntouched, but still mapped for the carrier whose thread had it when it ended
  kUntracked
};

// What happens to accesses before a page is shared (docs/detection.md, "The state of a
// page").
enum class SharingPolicy : std::uint8_t {
  kExact,        // every page is shared from its first touch on: no access is unrecorded
  kShared,       // a page belongs to the thread that touches it first until another one does
  kAdaptive,     // likewise; but what the owner does there is checked unless its code is hot
  kWriteShared,  // as kShared; but what is only read is not checked until somebody writes
};

// Pages [start, end) in one state.
struct PageRun {
  std::uint64_t start = 0, end = 0;
  PageState state = PageState::kUntouched;
  // Private and taken pages: logical thread. Orphaned ones: number of the carrier.
  std::uint64_t owner = 0;

  friend bool operator==(const PageRun&, const PageRun&) = default;
};

// What a touch led to.
struct Touch {
  // kPrivate: map `run` for the thread and go on natively. kShared, kTaken: the access traps.
  // kUntracked: map `run` for whoever asks.
  PageRun run;
  // The pages of the previous owner, or of the carrier that they were orphaned on, that must be
  // taken out of its page table before anything else.
  std::optional<PageRun> revoke;
  // Likewise `run`, out of all threads' tables: it was read-only.
  bool hide = false;
};

class PageStates {
 public:
  // Whether the owner of a private page has really used it: pages are given out in runs, and those
  // of a run that the owner never touched can change hands without being shared.
  using UsedByOwner = std::function<bool(std::uint64_t page, std::uint64_t owner)>;

  explicit PageStates(SharingPolicy policy) : policy_(policy) {}

  SharingPolicy policy() const { return policy_; }

  // The longest run of equal pages around `address`, within [low, high).
  PageRun Find(std::uint64_t address, std::uint64_t low, std::uint64_t high) const;

  // Now, in milliseconds. For those who take; without, nobody's tenure is kept.
  void SetTime(std::uint64_t now) { tenure_.SetTime(now); }

  // `thread` reads or writes `address`, which lies in a mapping [low, high). A run of the answer
  // stays inside the mapping. `takes`: pages that have been another thread's own for long are
  // taken instead of shared.
  Touch OnTouch(std::uint64_t thread, std::uint64_t address, bool write, std::uint64_t low,
                std::uint64_t high, const UsedByOwner& used, bool takes = false);

  // The pages are used under several addresses at once.
  void Share(std::uint64_t start, std::uint64_t end) { Set({start, end, PageState::kShared, 0}); }

  // ... are used by `thread` only now, or read only.
  void Give(std::uint64_t start, std::uint64_t end, std::uint64_t thread) {
    Set({start, end, PageState::kPrivate, thread});
    tenure_.Begin(start, end, false);
  }
  // What of [start, end) the thread has taken, and nobody else has touched since, becomes private
  // to it; returns that.
  std::vector<PageRun> KeepTaken(std::uint64_t start, std::uint64_t end, std::uint64_t thread);
  void MakeReadOnly(std::uint64_t start, std::uint64_t end) {
    Set({start, end, PageState::kReadOnly, 0});
  }

  // The thread ends: all of its private pages become untouched; returns them. What it has taken
  // becomes shared.
  std::vector<PageRun> Seal(std::uint64_t thread);
  // Such pages stay in the page table of the thread's carrier.
  void Orphan(std::uint64_t start, std::uint64_t end, std::uint64_t carrier) {
    Set({start, end, PageState::kOrphaned, carrier});
  }
  // They become private to `thread`, the next one on that carrier; returns them.
  std::vector<PageRun> Inherit(std::uint64_t carrier, std::uint64_t thread);
  // Whether that is how the page has become its owner's.
  bool IsInherited(std::uint64_t address) const;

  // The thread makes another one, which comes after all that it has done: its private pages stay
  // its own as if it had not used them yet, so the new thread may have them. But pages that it had
  // used at several such moments in a row are left alone. `forget_use(run)`: whether it has used
  // any of these pages since it got them, or since this was asked last; asked of runs in order.
  // What it has taken becomes shared.
  using ForgetUse = std::function<bool(const PageRun& run)>;
  void Renew(std::uint64_t thread, const ForgetUse& forget_use);

  // [start, end) is no longer, or fresh memory: untouched, whatever it was; untracked pages too.
  void Clear(std::uint64_t start, std::uint64_t end) {
    Set({start, end, PageState::kUntouched, 0});
  }

  // The state of [from, from + length) becomes that of [to, to + length), and the old place
  // untouched (mremap).
  void Move(std::uint64_t from, std::uint64_t to, std::uint64_t length);

  // Accesses to the pages are not tracked until Track.
  void Untrack(std::uint64_t start, std::uint64_t end) {
    Set({start, end, PageState::kUntracked, 0});
  }
  void Track(std::uint64_t start, std::uint64_t end);

  // A quiet moment: all pages untouched but the untracked ones, and, if a thread is left, its
  // private ones and those that are orphaned. Under kAdaptive what several such moments in a row
  // have found shared stays so, if it is not much: threads that come next will share it again, page
  // by page. Returns what those were that are untouched now.
  std::vector<PageRun> Reset(std::optional<std::uint64_t> left = std::nullopt);

  // Whether the page is in the thread's page table.
  static bool Visible(const PageRun& run, std::uint64_t thread) {
    return run.state == PageState::kUntracked ||
           (run.state == PageState::kPrivate && run.owner == thread);
  }

  // Whether what the thread does there, and may do, is checked as on a shared page.
  static bool IsSharedFor(const PageRun& run, std::uint64_t thread) {
    return run.state == PageState::kShared ||
           (run.state == PageState::kTaken && run.owner == thread);
  }
  // Whether only one thread may use the page.
  static bool HasOwner(const PageRun& run) {
    return run.state == PageState::kPrivate || run.state == PageState::kTaken;
  }
  // Whether it is nobody's yet: who touches it first has it for itself.
  static bool IsFree(const PageRun& run) {
    return run.state == PageState::kUntouched || run.state == PageState::kOrphaned;
  }

  // Calls `visit` for the runs of [start, end) in order, untouched ones included.
  void ForEach(std::uint64_t start, std::uint64_t end,
               const std::function<void(const PageRun&)>& visit) const;

  // Pages in a state other than untouched.
  std::uint64_t Count(PageState state) const;

 private:
  struct Body {
    std::uint64_t end;
    PageState state;
    std::uint64_t owner;
    // Private pages: 0 until a Renew, then 1 and how many in a row have found them used; saturates.
    unsigned renewals = 0;
    bool inherited = false;
  };

  void Set(const PageRun& run);
  void Split(std::uint64_t at);
  void MergeAround(std::uint64_t start);
  // The pages from `page` on that `thread` gets by its touch of it: of [free.start, free.end).
  PageRun RunFor(std::uint64_t thread, std::uint64_t page, const PageRun& free) const;
  PageRun Claim(std::uint64_t thread, std::uint64_t page, const PageRun& free);
  // Pages of `run` around `page` become shared by the thread's touch.
  PageRun Share(std::uint64_t thread, std::uint64_t page, const PageRun& run);
  // ... taken, those around `page` that have been another's for long.
  PageRun Take(std::uint64_t thread, std::uint64_t page, const PageRun& run);
  // Shared pages that a Reset leaves so, as runs in order.
  std::vector<PageRun> StayShared();

  const SharingPolicy policy_;
  std::map<std::uint64_t, Body> runs_;  // start -> rest; untouched pages are gaps
  // By thread: what its touches have made shared.
  std::unordered_map<std::uint64_t, Neighbourhood> shared_by_;
  PageTenure tenure_;
  // By page that the last Reset found shared: how many in a row have; saturates.
  std::unordered_map<std::uint64_t, unsigned> resets_shared_;
};

}  // namespace trapline
