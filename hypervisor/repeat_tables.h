// The monitor's side of guest-agent/repeats.h: which threads have a table, what they may repeat,
// and when what they have repeated is told.
//
// The agent is ahead of the monitor: a table has repeats of events that are still in the threads'
// queues, the words tell what memory is used for by now. So whatever the monitor does at an event
// concerns repeats of earlier moments only; that is what the parameters `before` say.
//
// Not thread-safe, but for what threads of the guest do to the tables at the same time. When not
// started, nothing happens.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "detector/event.h"
#include "guest-agent/agent.h"
#include "guest-agent/repeats.h"

namespace trapline {

// What a thread has repeated, last at `moment`: the number that the next event had then.
struct RepeatedAccess {
  ThreadId thread;
  bool write;
  bool locked;                  // by an instruction that is atomic whatever the word is
  std::uint64_t address, size;  // bytes
  std::uint64_t moment;
  std::uint64_t ip;
};

class RepeatTables {
 public:
  // 2 MiB of lines.
  static constexpr std::uint32_t kFirstLines = 1 << 15;

  using Tell = std::function<void(const RepeatedAccess&)>;

  // `next_event`: the number that the next event of any thread will have.
  RepeatTables(std::function<std::uint64_t()> next_event, Tell tell);

  // From now on threads are looked at (Add), and the search begins when `after` accesses have been
  // told. Needs the memory at TRAPLINE_REPEATS. Tables have `lines` lines at first, a power of two
  // from agent::kLinesInPage to agent::kRepeatLines.
  void Start(std::uint64_t after, std::uint32_t lines = kFirstLines);
  bool started() const { return started_; }
  // What has been repeated is told; no more from now on.
  void End(std::uint64_t before);

  // Gives the thread a table, unless all are taken: which one.
  std::optional<unsigned> Add(agent::ThreadPage& page, ThreadId thread);
  // The thread has ended, all that it did has been handled: what it has repeated is told.
  void Remove(unsigned slot);
  // A fork has left none of the threads.
  void RemoveAll();

  // The write, which the thread has told of, is plain, and so is whatever its site does: repeating
  // it need not be told.
  void Grant(unsigned slot, const AccessSite& site, std::uint64_t address);
  // Hints that Grant, and Touch, follow soon for an access there.
  static void PrefetchLine(unsigned slot, std::uint64_t address) {
    const std::uint32_t index = agent::IndexOf(address / agent::kRepeatBlock);
    __builtin_prefetch(&agent::TableOf(slot)[agent::LineOf(index, agent::LineMaskOf(slot))].entry);
  }
  static void PrefetchUse(std::uint64_t address) {
    __builtin_prefetch(&agent::Repeats().use[agent::IndexOf(address / agent::kRepeatBlock)]);
  }
  // The access, which the thread has told of last, was none after all.
  static void Untell(unsigned slot, const AccessSite& site, std::uint64_t address);
  // The thread that is `user` (agent::BlockUse) touches [address, address + size), seen by the
  // monitor. `tell` gets what ends by it.
  void Touch(std::uint32_t user, std::uint64_t address, std::uint64_t size, agent::Touch touch,
             const Tell& tell);
  // Words in [start, end) may have been written unseen. `tell` gets what was read there atomically.
  void TouchReadAtomically(std::uint64_t start, std::uint64_t end, const Tell& tell);
  // [start, end), not used at the moment, is another thing from now on: what was repeated there is
  // nobody's business.
  void Forget(std::uint64_t start, std::uint64_t end);
  // Event `number`: [start, end) is fresh memory, or `thread` has given it back (`freed`). What was
  // done there before is over, but what others did may race with giving it back.
  void OnBlock(ThreadId thread, bool freed, std::uint64_t start, std::uint64_t end,
               std::uint64_t number);

  // Whether a larger table would have found many more repeats of the thread's since that was asked
  // last. To be asked by the thread itself; needs no lock.
  bool IsFull(unsigned slot);
  // Doubles it, unless it is as large as can be. The thread must not be in the agent's search. What
  // it has repeated is told; if some of that was not before `before`, the table stays as it is.
  void Grow(unsigned slot, std::uint64_t before);

  void TellAll(std::uint64_t before);
  // What one thread has repeated.
  void TellThose(unsigned slot, std::uint64_t before) {
    if (started_) TellTable(slot, before);
  }
  // A moment of the thread has been told of. When one thread's are many, all that was repeated is
  // told, and what was noted of locks must be: true. The detector does not know them for ever
  // (MomentHistory::kLeast), and who ends a peace may be a queue behind.
  static constexpr std::uint32_t kMostMoments = (1 << 18) - 2 * TRAPLINE_QUEUE_ENTRIES;
  bool OnMoment(ThreadId thread, std::uint64_t before) {
    if (thread >= moments_.size()) moments_.resize(std::size_t{thread} + 1);
    if (++moments_[thread] < kMostMoments) [[likely]]
      return false;
    std::ranges::fill(moments_, 0);
    TellAll(before);
    return true;
  }
  // Finding repeats must pay: where threads have no time to come back to what they did, it pauses,
  // and the tables give their memory back. `checks`: accesses that were told so far. To be called
  // whenever the queues have been drained.
  void Weigh(std::uint64_t checks, std::uint64_t before);
  // Nothing was repeated, nothing told.
  void Clear();

  std::uint64_t count() const;  // of repeats found

 private:
  void TouchBlock(std::uint32_t index, agent::Touch touch, std::uint32_t user, const Tell& tell);
  void ClearTable(unsigned slot);
  void SetLines(unsigned slot, std::uint32_t lines);
  // It has no memory from now on, and no entries before.
  static void DiscardTable(unsigned slot);
  // As Clear, and the tables have no memory from now on.
  void Discard();
  void TellTable(unsigned slot, std::uint64_t before);
  RepeatedAccess Whole(unsigned slot, const agent::Repeat& repeat) const;

  const std::function<std::uint64_t()> next_event_;
  const Tell tell_;
  bool started_ = false, was_started_ = false;
  std::array<agent::ThreadPage*, agent::kRepeatThreads> pages_{};  // null: free
  std::vector<std::uint32_t> moments_;                             // by thread: see OnMoment
  std::uint64_t first_trial_ = 0;                                  // checks
  std::uint64_t weigh_at_ = 0;                                     // checks
  std::uint64_t pause_ = 0;                                        // the next one, in checks
  std::uint64_t counted_ = 0;                                      // when that was weighed last
  // A pause has begun before this event, and the tables have not been discarded; 0: no.
  std::uint64_t discard_after_ = 0;
  unsigned drains_ = 0;  // since then
  std::uint32_t first_lines_ = kFirstLines;
  // ThreadPage::repeats_missed and queue_head when a table was last asked whether it is full.
  struct Growth {
    std::uint64_t missed, queued;
  };
  std::array<Growth, agent::kRepeatThreads> growth_{};
  unsigned blocks_ = 0;      // that OnBlock was told of
  std::uint64_t ended_ = 0;  // of threads that are gone
};

}  // namespace trapline
