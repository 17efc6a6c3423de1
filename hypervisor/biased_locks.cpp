#include "hypervisor/biased_locks.h"

#include <algorithm>
#include <utility>

namespace trapline {

using agent::LockLine;
using agent::Locks;

BiasedLocks::BiasedLocks(std::function<std::uint64_t()> next_event, Tell tell)
    : next_event_(std::move(next_event)), tell_(std::move(tell)) {}

void BiasedLocks::Start(std::uint64_t after) {
  started_ = true;
  after_ = after;
  if (after == 0) Enable();
}

void BiasedLocks::Enable() {
  __atomic_store_n(&Locks().tables, tables_, __ATOMIC_SEQ_CST);
  std::uint32_t not_yet = 0;  // a thread may have ended them
  __atomic_compare_exchange_n(&Locks().state, &not_yet, TRAPLINE_LOCKS_BIASED, false,
                              __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE);
}

void BiasedLocks::End() {
  if (started_) __atomic_store_n(&Locks().state, TRAPLINE_LOCKS_ENDED, __ATOMIC_SEQ_CST);
}

void BiasedLocks::Add(agent::ThreadPage& page, std::optional<unsigned> slot) {
  page.lock_table = page.held_count = 0;
  if (!started_ || !slot) return;
  tables_ = std::max(tables_, *slot + 1);
  if (Locks().tables != 0) __atomic_store_n(&Locks().tables, tables_, __ATOMIC_SEQ_CST);
  page.lock_table = reinterpret_cast<std::uint64_t>(&Locks().lines[*slot]);
  ticks_[*slot] = 0;
}

void BiasedLocks::Remove(unsigned slot) {
  if (!started_) return;
  TellTable(slot, ~std::uint64_t{0});
  ClearTable(slot);  // whoever gets its number has other locks
}

void BiasedLocks::Touch(std::uint64_t lock, const std::function<void()>& drain) {
  if (!started_ || Locks().tables == 0) return;
  const std::uint32_t hash = agent::HashOfLock(lock);
  std::uint32_t& word = Locks().use[hash];
  std::uint32_t before = __atomic_load_n(&word, __ATOMIC_ACQUIRE);
  while ((before & agent::kBlockUseMask) != agent::kUsedByNobody &&
         !__atomic_compare_exchange_n(&word, &before, (before | agent::kBlockUseMask) + 1, false,
                                      __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE)) {
  }
  drain();
  for (unsigned slot = 0; slot < tables_; ++slot) {
    LockLine& line = Locks().lines[slot][hash % agent::kLockLines];
    if (agent::HashOfLock(__atomic_load_n(&line.lock, __ATOMIC_ACQUIRE)) == hash)
      TellLine(slot, line, ticks_[slot]);
  }
}

void BiasedLocks::TellAll() {
  std::ranges::fill(acquired_, 0);
  if (!started_) return;
  for (unsigned slot = 0; slot < agent::kRepeatThreads; ++slot) TellTable(slot, ticks_[slot]);
}

void BiasedLocks::Clear() {
  if (!started_) return;
  for (unsigned slot = 0; slot < agent::kRepeatThreads; ++slot) ClearTable(slot);
}

void BiasedLocks::TellTable(unsigned slot, std::uint64_t last) {
  if (__atomic_load_n(&Locks().used[slot], __ATOMIC_ACQUIRE) == 0) return;
  for (LockLine& line : Locks().lines[slot]) TellLine(slot, line, last);
}

void BiasedLocks::TellLine(unsigned slot, LockLine& line, std::uint64_t last) {
  // In this order: before its thread puts another lock there, it takes back the note.
  std::uint32_t note = __atomic_load_n(&line.note, __ATOMIC_ACQUIRE);
  const std::uint64_t lock = __atomic_load_n(&line.lock, __ATOMIC_ACQUIRE);
  if (lock == 0 || note == 0 || agent::Repeats().threads[slot] == 0) return;
  const std::uint64_t number = agent::WholeMoment(next_event_(), note);
  if (number > last) return;
  if (!__atomic_compare_exchange_n(&line.note, &note, 0, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    return;
  }
  tell_({static_cast<ThreadId>(agent::Repeats().threads[slot] - 1), lock, number});
}

void BiasedLocks::ClearTable(unsigned slot) {
  if (std::exchange(Locks().used[slot], 0) == 0) return;
  std::ranges::fill(Locks().lines[slot], LockLine{});
}

}  // namespace trapline
