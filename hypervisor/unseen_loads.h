// What a thread may load without being heard of: no event follows when a plain load is done, and
// the code cache's filter hides the load that is repeated in one epoch.
//
// The epoch here is that of the filter; without a filter each access is one. Guarded by Tracking's
// mutex.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "detector/event.h"
#include "hypervisor/release_log.h"
#include "translator/memory_access.h"

namespace trapline {

// Of one thread.
class UnseenLoads {
 public:
  struct Word {
    std::uint64_t address, size;  // bytes
    friend bool operator==(const Word&, const Word&) = default;
  };

  // The load has been told as one of this kind. No event follows when a plain load is done: it may
  // see what was stored since it was reported.
  void Note(const MemoryAccess& access, EventKind kind) {
    if (kind == EventKind::kAtomicRead) {
      Watch({access.address, access.size});
    } else if (reads_.size() < kMostReads) {
      reads_.push_back(access.address | (access.size == 2 * kHalf ? kWide : 0));
    } else {
      NoteMore(access.address);
    }
  }
  // Whether it has read the word plainly in its epoch, or 8 bytes whose second half it is, and so
  // might read it again unseen. (libstdc++ reads both counts of a shared_ptr at once.) Of one in
  // sixty other words, too, when it has read 65,000, of one in six when it has read 260,000, and of
  // those that begin in the same four bytes when it has read more than a few thousand.
  bool MayReadAgain(std::uint64_t address) const;
  // It has, in its epoch, loaded something plainly that may be atomic (MayBeAtomicCode).
  void NoteMayPoll() { may_poll_ = true; }
  bool may_poll() const { return may_poll_; }

  // The thread loads the word plainly, and others write it atomically. Which of its loads saw what,
  // nobody knows, for the filter may hide them: it takes in what was released there at each of its
  // events, until its epoch ends.
  void Watch(const Word& word);
  void ForgetWatched() {
    watched_.clear();
    known_ = 0;
  }
  // Whether a word is watched to which something may have been released that has not been taken in.
  bool IsBehind(const ReleaseLog& releases) const {
    return !watched_.empty() && (taken_in_ != releases.count() || known_ != watched_.size());
  }
  // Calls acquire(Word) for those of the watched words.
  template <class Acquire>
  void TakeIn(const ReleaseLog& releases, Acquire&& acquire) {
    // What is new may have been read before anything that was released since.
    std::size_t first = known_;
    if (releases.Knows(taken_in_)) {
      releases.ForEachSince(taken_in_, [&](const ReleaseLog::Bytes& released) {
        for (std::size_t i = 0; i < known_; ++i) {
          const Word& word = watched_[i];
          if (word.address < released.address + released.size &&
              released.address < word.address + word.size) {
            acquire(word);
          }
        }
      });
    } else {
      first = 0;
    }
    for (; first < watched_.size(); ++first) acquire(watched_[first]);
    known_ = watched_.size();
    taken_in_ = releases.count();
  }

  // `next`: of the event at which it ends the number and one; 0: not known.
  void EndEpoch(std::uint64_t next) {
    epoch_start_ = next;
    ForgetWatched();
    may_poll_ = false;
    reads_.clear();
    more_reads_.clear();
  }
  // What it has repeated at an earlier moment was in an epoch that is over; 0: nothing is.
  std::uint64_t epoch_start() const { return epoch_start_; }

 private:
  static constexpr std::size_t kMostReads = 4096;

  static constexpr std::uint64_t kHalf = 4;
  // In reads_: of 8 bytes. No address of the program's has this bit.
  static constexpr std::uint64_t kWide = std::uint64_t{1} << 63;

  void NoteMore(std::uint64_t address);
  bool HasMore(std::uint64_t address) const;

  std::vector<Word> watched_;
  std::size_t known_ = 0;       // of those, the first: what was released to them...
  std::uint64_t taken_in_ = 0;  // ... until there were so many releases has been taken in
  std::uint64_t epoch_start_ = 0;
  // What it has read plainly since its epoch began, by address; what more that was, two bits each
  // by a hash of the address (Bloom, CACM 1970).
  std::vector<std::uint64_t> reads_;
  std::vector<std::uint64_t> more_reads_;
  bool may_poll_ = false;
};

}  // namespace trapline
