// Locks that one thread alone takes need not be told of.
//
// A lock is biased to a thread that has told of taking it and of giving it back, as long as nobody
// else has to do with it (biased locking: Kawachiya, Koseki and Onodera, OOPSLA 2002). When that
// thread takes it once more there is nothing to learn from the lock. So the thread only remembers
// that it holds it: it tells of that before it tells of anything else that it does meanwhile. If
// there was nothing, it does not tell of giving the lock back either, but that its epoch ends
// (TRAPLINE_QUEUED_TICK), and it notes the number of that event with the lock. Whoever comes for
// the lock next finds that there, and tells of it as a release that was at that moment
// (TRAPLINE_QUEUED_LATE_RELEASE). The same release may be told twice.
//
// Whether a lock is biased, and to whom, its word in LockMemory::use tells; locks share words. Each
// thread has a table with a line for each lock that is biased to it, of those with the same line
// the latest. What was learnt at one value of a word holds as long as the word has it:
//
//     nobody --taken--> one thread --anything by another--> nobody
//
// Only its own thread begins a peace, after it has told of all that others have noted. Who ends one
// changes the word, and then looks at the lines of all threads; who notes something looks at the
// word afterwards, and if that has changed tells of it, too. The thread's event is in its queue
// before the note can be seen.
//
// Used by the agent (agent.S) and by the monitor (hypervisor/biased_locks.h), which sees the same
// memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "guest-agent/layout.h"
#include "guest-agent/repeats.h"

namespace trapline::agent {

struct LockLine {
  std::uint64_t lock;  // its address; 0: none
  std::uint32_t use;   // its word while it is biased
  std::uint32_t note;  // lower half of the number of its last untold release; 0: none
};
static_assert(sizeof(LockLine) == 1 << TRAPLINE_LOCK_LINE_SIZE_BITS &&
              offsetof(LockLine, use) == TRAPLINE_LOCK_LINE_USE &&
              offsetof(LockLine, note) == TRAPLINE_LOCK_LINE_NOTE);

// A lock that its thread has taken and not told of.
struct HeldLock {
  std::uint64_t address, size, ip;  // as in events.h
};
static_assert(sizeof(HeldLock) == 24);

inline constexpr std::uint32_t kLockWords = 1u << TRAPLINE_LOCK_HASH_BITS;
inline constexpr std::uint32_t kLockLines = 1u << TRAPLINE_LOCK_LINE_BITS;

// At TRAPLINE_LOCKS, the same for all threads and the monitor. A thread's table has the number of
// its table of repeats, RepeatMemory::threads.
struct LockMemory {
  std::uint32_t state;   // TRAPLINE_LOCKS_...
  std::uint32_t tables;  // all threads' are before this one; 0: there was no biased lock yet
  alignas(64) std::uint8_t used[kRepeatThreads];  // whether there is anything in a table
  // Word of a lock: lower TRAPLINE_REPEAT_USE_BITS as in RepeatMemory (its thread's or nobody's),
  // above a count of changes.
  alignas(4096) std::uint32_t use[kLockWords];
  alignas(1 << 19) LockLine lines[kRepeatThreads][kLockLines];
};
static_assert(offsetof(LockMemory, tables) + TRAPLINE_LOCKS == TRAPLINE_LOCK_TABLE_COUNT);
static_assert(offsetof(LockMemory, used) + TRAPLINE_LOCKS == TRAPLINE_LOCK_TABLES_USED);
static_assert(offsetof(RepeatMemory, threads) == TRAPLINE_REPEAT_THREADS - TRAPLINE_REPEATS);
static_assert(offsetof(LockMemory, use) + TRAPLINE_LOCKS == TRAPLINE_LOCK_USE);
static_assert(offsetof(LockMemory, lines) + TRAPLINE_LOCKS == TRAPLINE_LOCK_TABLES);
static_assert(sizeof(LockLine[kLockLines]) == TRAPLINE_LOCK_TABLE_SIZE);
// In a gap of SectorMemory.
static_assert(TRAPLINE_LOCKS >= TRAPLINE_REPEATS + offsetof(RepeatMemory, sectors) +
                                    offsetof(SectorMemory, groups) + sizeof(SectorMemory::groups) &&
              TRAPLINE_LOCKS + sizeof(LockMemory) <= TRAPLINE_SUBSECTOR_USE);

inline LockMemory& Locks() { return *reinterpret_cast<LockMemory*>(TRAPLINE_LOCKS); }

constexpr std::uint32_t HashOfLock(std::uint64_t address) {
  return static_cast<std::uint32_t>(address >> 2) * TRAPLINE_LOCK_FACTOR >>
         (32 - TRAPLINE_LOCK_HASH_BITS);
}

}  // namespace trapline::agent
