// The agent as the monitor sees it: addresses of its entry points and the thread page both sides
// share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "guest-agent/biased_locks.h"
#include "guest-agent/events.h"
#include "guest-agent/layout.h"
#include "guest-agent/sector_use.h"

extern "C" {
extern const char __start_trapline_repeats[],
    __stop_trapline_repeats[];  // repeats.cpp's and elements.cpp's
extern const char trapline_agent_begin[], trapline_agent_end[], trapline_agent_exceptions[],
    trapline_agent_syscall_ring0[], trapline_agent_syscall_ring3[], trapline_agent_syscall_cached[],
    trapline_agent_futex[], trapline_agent_futex_leave[], trapline_agent_futex_answer[],
    trapline_agent_futex_answered[], trapline_agent_resume[], trapline_agent_resume_vector[],
    trapline_agent_save_vector[], trapline_agent_probe_out[], trapline_agent_probe_tsc[],
    trapline_agent_probe_syscall[], trapline_agent_probe_fault[], trapline_agent_probe_skip[],
    trapline_agent_redirect[], trapline_agent_redirect_saved[], trapline_agent_redirect_end[],
    trapline_agent_probe_fs_base[], trapline_agent_probe_redirect[],
    trapline_agent_probe_redirect_fault[], trapline_agent_probe_redirected[],
    trapline_agent_event[], trapline_agent_event_commit[], trapline_agent_event_full[],
    trapline_agent_event_fiber[], trapline_agent_event_held[], trapline_agent_access[],
    trapline_agent_access_out[], trapline_agent_interface_table[], trapline_agent_cache_access[],
    trapline_agent_cache_full[], trapline_agent_cache_many[], trapline_agent_to_repeats[],
    trapline_agent_to_queued[], trapline_agent_to_elements[];
}

namespace trapline {
struct AccessSite;
struct RegisterFile;
}  // namespace trapline

// The functions of repeats.cpp and elements.cpp that agent.S calls.
extern "C" {
// Whether an access need not be told of. `registers`: null but for sites that only they tell of.
bool trapline_agent_repeats(const trapline::AccessSite* site, std::uint64_t address,
                            const trapline::RegisterFile* registers);
// The access, atomic or a write, has been queued; it is not yet carried out.
void trapline_agent_queued(const trapline::AccessSite* site, std::uint64_t address);
// What an instruction that is the first site of ElementSites is about to access is told of by
// tell(site, address, null), unless that need not be.
void trapline_agent_elements(const trapline::AccessSite* site,
                             const trapline::RegisterFile* registers,
                             void (*tell)(const trapline::AccessSite*, std::uint64_t,
                                          const trapline::RegisterFile*));
}

namespace trapline::agent {

// Guest address of an entry point, from its place in the blob.
inline std::uint64_t GuestAddressOf(const char* entry) {
  return TRAPLINE_AGENT_CODE + static_cast<std::uint64_t>(entry - trapline_agent_begin);
}

// Of the entry of an exception, its slot.
inline std::uint64_t EntryOf(unsigned vector) {
  return GuestAddressOf(trapline_agent_exceptions) + std::uint64_t{vector} * TRAPLINE_SLOT_SIZE;
}

// Of agent.S.
inline std::size_t BlobSize() {
  return static_cast<std::size_t>(trapline_agent_end - trapline_agent_begin);
}
// Of repeats.cpp and elements.cpp, which lie at TRAPLINE_AGENT_REPEATS.
inline std::size_t RepeatsSize() {
  return static_cast<std::size_t>(__stop_trapline_repeats - __start_trapline_repeats);
}
// Of both, and what lies between them.
inline std::size_t CodeSize() {
  return TRAPLINE_AGENT_REPEATS - TRAPLINE_AGENT_CODE + RepeatsSize();
}

// Copies the code to where the guest will have it, CodeSize() bytes.
inline void CopyCode(char* to) {
  std::memcpy(to, trapline_agent_begin, BlobSize());
  constexpr std::size_t kRepeats = TRAPLINE_AGENT_REPEATS - TRAPLINE_AGENT_CODE;
  std::memcpy(to + kRepeats, __start_trapline_repeats, RepeatsSize());
  // The ways from the one to the other, `jmp rel32`.
  const auto link = [to](const char* jump, const void* function) {
    const std::int64_t target = static_cast<std::int64_t>(kRepeats) +
                                (static_cast<const char*>(function) - __start_trapline_repeats);
    const std::int64_t end = jump + 5 - trapline_agent_begin;
    const auto displacement = static_cast<std::int32_t>(target - end);
    std::memcpy(to + end - sizeof displacement, &displacement, sizeof displacement);
  };
  link(trapline_agent_to_repeats, reinterpret_cast<const void*>(&trapline_agent_repeats));
  link(trapline_agent_to_queued, reinterpret_cast<const void*>(&trapline_agent_queued));
  link(trapline_agent_to_elements, reinterpret_cast<const void*>(&trapline_agent_elements));
}

// Whether a guest address lies in agent.S's part.
inline bool Contains(std::uint64_t address) {
  return address >= TRAPLINE_AGENT_CODE && address < TRAPLINE_AGENT_CODE + BlobSize();
}

// Length of `out %al, $imm8`. At an exit kvm_amd leaves RIP on the instruction, kvm_pvm past it, so
// code compares against both.
inline constexpr std::uint64_t kOutLength = 2;

// What the processor pushes on an IST stack, lowest address first (Intel SDM vol. 3, 6.14.2),
// without the error code some vectors add below it. The same layout is what iretq pops.
struct InterruptFrame {
  std::uint64_t rip, cs, rflags, rsp, ss;
};
static_assert(sizeof(InterruptFrame) == 40);

// Counters the scheduler and the monitor keep for a logical thread; printed by --stats.
struct ThreadCounters {
  std::uint64_t futex_waits, futex_wakes;  // that the agent has answered
  std::uint64_t system_calls;              // all others
  std::uint64_t page_faults;               // exits because of #PF
  std::uint64_t exceptions;                // exits because of any other vector
  std::uint64_t interruptions;             // KVM_RUN ended by a host signal
  std::uint64_t signals;                   // guest signal handlers entered
  std::uint64_t other_exits;
  std::uint64_t lease_time;      // nanoseconds that were waited for pages of others (AwaitLease)
  std::uint64_t native_time;     // nanoseconds of processor time out of the code cache, once left
  std::uint64_t returns;         // to the code cache from there
  std::uint64_t redirects;       // ... without leaving the guest
  std::uint64_t partial_stays;   // in partial code (hypervisor/guest_code_cache.h)
  std::uint64_t partial_leaves;  // ... for a few accesses in full code

  void Add(const ThreadCounters& other) {
    futex_waits += other.futex_waits;
    futex_wakes += other.futex_wakes;
    system_calls += other.system_calls;
    page_faults += other.page_faults;
    exceptions += other.exceptions;
    interruptions += other.interruptions;
    signals += other.signals;
    other_exits += other.other_exits;
    lease_time += other.lease_time;
    native_time += other.native_time;
    returns += other.returns;
    redirects += other.redirects;
    partial_stays += other.partial_stays;
    partial_leaves += other.partial_leaves;
  }
};

// What the agent needs to answer futex calls (agent.S). The first two are the monitor's, the rest
// its own.
struct FutexState {
  std::uint32_t answers;  // whether it may
  std::uint32_t spins;    // how often it looks at the word before it leaves to wait
  std::uint32_t skip;     // how many waits are not worth that
  std::uint32_t penalty;  // ... after the next one that was not
  // The present call's: where it returns to and to which stack, its result.
  std::uint64_t return_address, rsp, result;
};
// What it has on its stack meanwhile, at kFutexStack: the program's.
struct FutexRegisters {
  std::uint64_t r9, r8, rax, rflags;
};
inline constexpr std::uint64_t kFutexStack = TRAPLINE_AGENT_STACK_TOP - sizeof(FutexRegisters);

// A thread's part in redirects (redirect.h). Where nobody is named, the agent's.
struct RedirectState {
  std::uint64_t enabled;  // the monitor's: the thread runs natively and may be redirected
  // The generation of code that the thread may have gone over to since the monitor last looked, or
  // 0: then `by`, `rip` and `time` tell the last time that it did.
  std::uint64_t entered;
  // Of the fault: what the gate's frame held.
  std::uint64_t rip, rflags, rsp;
  std::uint64_t by;    // address of the Redirect
  std::uint64_t time;  // time stamp counter
  std::int64_t stay;   // the monitor's: CacheThread::leave_after of who goes over
};
// The registers that its code has on the fault's stack, below the error code.
struct RedirectRegisters {
  std::uint64_t r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax;
};

// First page of the thread page region: the thread-identity channel. The guest scheduler (the
// monitor, when it puts a guest thread on a vCPU) writes it; every later check, trap and log record
// takes the identity from here and nowhere else. Written only by the thread that owns it.
struct ThreadPage {
  std::uint64_t carrier;         // number of the vCPU that runs the thread
  std::uint64_t logical_thread;  // number of the guest thread, never reused inside a process
  std::uint64_t epoch;  // logical thread in the top 16 bits, clock below; 0 until detection runs
  std::uint64_t clock;  // the thread's own clock
  std::uint64_t tid;    // Linux thread number
  // Read by the agent's entry points (layout.h): whether accesses are tracked at the moment, and
  // whether events are wanted at all.
  std::uint64_t tracking, events;
  // The event queue: entries [tail, head) modulo its size. The thread moves head, whoever drains
  // the queue moves tail.
  std::uint64_t queue_head, queue_tail;
  std::uint64_t native;  // Carrier::native(), which the monitor sets
  // repeats.h: 1 + the number of the thread's table, or kUsedByOthers, or 0 where repeats are not
  // looked for and their memory is not there.
  std::uint64_t repeat_user;
  std::uint64_t repeat_table, repeat_write_sites;  // addresses of the thread's own; 0: it has none
  std::uint64_t repeats;                           // how many accesses were found to be repeats
  FutexState futex;
  ThreadCounters counters;
  // Frame for the resume entries.
  alignas(64) struct {
    std::uint64_t rdi, rdx, rax;
    InterruptFrame interrupt;
  } resume;
  // By a sector's byte (sector_use.h): kLeaveOutReads, kLeaveOutWrites, both or neither. Set by the
  // monitor.
  alignas(1024) std::uint8_t need_not_tell[kSectorStates];
  // RepeatMemory::line_mask of the thread's table, and how many accesses would have been repeats if
  // it had been larger (DisplacedLine).
  std::uint64_t repeat_line_mask, repeats_missed;
  // How many writes to its own settled memory, which are left out but counted if need_not_tell says
  // that they are not left out, the thread makes in the code cache until it leaves that.
  std::int64_t counted_writes;
  alignas(64) RedirectState redirect;
  // biased_locks.h: address of the thread's own table, 0: it has none; what it holds untold, the
  // innermost last.
  std::uint64_t lock_table;
  std::uint64_t held_count;
  HeldLock held[TRAPLINE_MOST_HELD];
  std::uint32_t lock_word;  // of an event of a lock, when it looked at others' tables
};
static_assert(offsetof(ThreadPage, lock_table) + TRAPLINE_THREAD_PAGE ==
              TRAPLINE_THREAD_LOCK_TABLE);
static_assert(offsetof(ThreadPage, held_count) + TRAPLINE_THREAD_PAGE ==
              TRAPLINE_THREAD_HELD_COUNT);
static_assert(offsetof(ThreadPage, held) + TRAPLINE_THREAD_PAGE == TRAPLINE_THREAD_HELD);
static_assert(offsetof(ThreadPage, lock_word) + TRAPLINE_THREAD_PAGE == TRAPLINE_THREAD_LOCK_WORD);
static_assert(offsetof(ThreadPage, resume) % 64 == 0);
static_assert(offsetof(ThreadPage, logical_thread) + TRAPLINE_THREAD_PAGE ==
              TRAPLINE_THREAD_NUMBER);
static_assert(offsetof(ThreadPage, tracking) + TRAPLINE_THREAD_PAGE == TRAPLINE_THREAD_TRACKING);
static_assert(offsetof(ThreadPage, events) + TRAPLINE_THREAD_PAGE == TRAPLINE_THREAD_EVENTS);
static_assert(offsetof(ThreadPage, queue_head) + TRAPLINE_THREAD_PAGE == TRAPLINE_QUEUE_HEAD);
static_assert(offsetof(ThreadPage, queue_tail) + TRAPLINE_THREAD_PAGE == TRAPLINE_QUEUE_TAIL);
static_assert(offsetof(ThreadPage, native) + TRAPLINE_THREAD_PAGE == TRAPLINE_THREAD_NATIVE);

static_assert(offsetof(ThreadPage, repeat_user) + TRAPLINE_THREAD_PAGE ==
              TRAPLINE_THREAD_REPEAT_USER);
static_assert(offsetof(ThreadPage, repeat_table) + TRAPLINE_THREAD_PAGE ==
              TRAPLINE_THREAD_REPEAT_TABLE);
static_assert(offsetof(ThreadPage, repeat_write_sites) + TRAPLINE_THREAD_PAGE ==
              TRAPLINE_THREAD_REPEAT_WRITE_SITES);
static_assert(offsetof(ThreadPage, repeats) + TRAPLINE_THREAD_PAGE == TRAPLINE_THREAD_REPEATS);
static_assert(offsetof(ThreadPage, redirect) + TRAPLINE_THREAD_PAGE == TRAPLINE_THREAD_REDIRECT);
static_assert(offsetof(RedirectState, entered) ==
              TRAPLINE_THREAD_REDIRECT_ENTERED - TRAPLINE_THREAD_REDIRECT);
static_assert(offsetof(RedirectState, rip) ==
              TRAPLINE_THREAD_REDIRECT_RIP - TRAPLINE_THREAD_REDIRECT);
static_assert(offsetof(RedirectState, rflags) ==
              TRAPLINE_THREAD_REDIRECT_RFLAGS - TRAPLINE_THREAD_REDIRECT);
static_assert(offsetof(RedirectState, rsp) ==
              TRAPLINE_THREAD_REDIRECT_RSP - TRAPLINE_THREAD_REDIRECT);
static_assert(offsetof(RedirectState, by) ==
              TRAPLINE_THREAD_REDIRECT_BY - TRAPLINE_THREAD_REDIRECT);
static_assert(offsetof(RedirectState, time) ==
              TRAPLINE_THREAD_REDIRECT_TIME - TRAPLINE_THREAD_REDIRECT);
static_assert(offsetof(RedirectState, stay) ==
              TRAPLINE_THREAD_REDIRECT_STAY - TRAPLINE_THREAD_REDIRECT);
constexpr std::size_t FutexField(std::size_t offset) {
  return TRAPLINE_THREAD_PAGE + offsetof(ThreadPage, futex) + offset;
}
static_assert(offsetof(ThreadPage, counters) + offsetof(ThreadCounters, futex_waits) +
                  TRAPLINE_THREAD_PAGE ==
              TRAPLINE_FUTEX_WAITS);
static_assert(offsetof(ThreadPage, counters) + offsetof(ThreadCounters, futex_wakes) +
                  TRAPLINE_THREAD_PAGE ==
              TRAPLINE_FUTEX_WAKES);
static_assert(FutexField(offsetof(FutexState, answers)) == TRAPLINE_FUTEX_ANSWERS);
static_assert(FutexField(offsetof(FutexState, spins)) == TRAPLINE_FUTEX_SPINS);
static_assert(FutexField(offsetof(FutexState, skip)) == TRAPLINE_FUTEX_SKIP);
static_assert(FutexField(offsetof(FutexState, penalty)) == TRAPLINE_FUTEX_PENALTY);
static_assert(FutexField(offsetof(FutexState, return_address)) == TRAPLINE_FUTEX_RETURN);
static_assert(FutexField(offsetof(FutexState, rsp)) == TRAPLINE_FUTEX_RSP);
static_assert(offsetof(ThreadPage, need_not_tell) + TRAPLINE_THREAD_PAGE ==
              TRAPLINE_THREAD_NEED_NOT_TELL);
static_assert(offsetof(ThreadPage, repeat_line_mask) + TRAPLINE_THREAD_PAGE ==
              TRAPLINE_THREAD_REPEAT_LINE_MASK);
static_assert(offsetof(ThreadPage, counted_writes) + TRAPLINE_THREAD_PAGE ==
              TRAPLINE_THREAD_COUNTED_WRITES);
static_assert(FutexField(offsetof(FutexState, result)) == TRAPLINE_FUTEX_RESULT);

// An event as trapline_agent_event leaves it in the queue; fields as in events.h.
struct QueuedEvent {
  std::uint64_t sequence;  // a total order over all threads
  std::uint64_t kind, address, size, ip;
};
static_assert(sizeof(QueuedEvent) == TRAPLINE_QUEUE_ENTRY_SIZE);
static_assert(TRAPLINE_FIRST_LASTING_EVENT == TRAPLINE_ALLOCATE);
static_assert(TRAPLINE_IN_EPOCH_EVENTS ==
              (1 << TRAPLINE_ACQUIRE | 1 << TRAPLINE_ACQUIRE_SHARED | 1 << TRAPLINE_HAPPENS_AFTER |
               1 << TRAPLINE_BARRIER_LEAVE | 1 << TRAPLINE_JOIN | 1 << TRAPLINE_SYNC_DESTROYED |
               1 << TRAPLINE_FREE | 1 << TRAPLINE_IGNORE_BEGIN | 1 << TRAPLINE_IGNORE_SYNC_BEGIN |
               1 << TRAPLINE_BENIGN_RACE | 1 << TRAPLINE_UNTRACK | 1 << TRAPLINE_THREAD_NAME |
               1 << TRAPLINE_SYNC_CREATED | 1 << TRAPLINE_SYNC_USED | 1 << TRAPLINE_JOIN_BEGIN));
static_assert(TRAPLINE_EVENT_READ == TRAPLINE_READ && TRAPLINE_EVENT_WRITE == TRAPLINE_WRITE);
static_assert(TRAPLINE_EVENT_FIBER_CREATE == TRAPLINE_FIBER_CREATE);
static_assert(TRAPLINE_EVENT_ALLOCATE == TRAPLINE_ALLOCATE &&
              TRAPLINE_FREE == TRAPLINE_ALLOCATE + 1 &&
              TRAPLINE_EVENT_CLEAR_HISTORY == TRAPLINE_FREE + 1 &&
              TRAPLINE_EVENT_CLEAR_HISTORY == TRAPLINE_CLEAR_HISTORY);
static_assert(TRAPLINE_EVENT_IGNORE_BEGIN == TRAPLINE_IGNORE_BEGIN &&
              TRAPLINE_EVENT_IGNORE_SYNC_END == TRAPLINE_IGNORE_SYNC_END &&
              TRAPLINE_EVENT_UNTRACK == TRAPLINE_UNTRACK &&
              TRAPLINE_EVENT_COPY_HISTORY == TRAPLINE_COPY_HISTORY);
static_assert(TRAPLINE_EVENT_ACQUIRE == TRAPLINE_ACQUIRE &&
              TRAPLINE_EVENT_RELEASE == TRAPLINE_RELEASE &&
              TRAPLINE_EVENT_RELEASE_SHARED == TRAPLINE_RELEASE_SHARED &&
              TRAPLINE_EVENT_SYNC_DESTROYED == TRAPLINE_SYNC_DESTROYED &&
              TRAPLINE_EVENT_SYNC_CREATED == TRAPLINE_SYNC_CREATED);
static_assert(TRAPLINE_TASK_OF_THREAD < TRAPLINE_QUEUED_LATE_RELEASE &&
              TRAPLINE_QUEUED_WAKE < TRAPLINE_QUEUED_FRAME);
static_assert(sizeof(struct trapline_agent_interface) == 40);
// Of each of these one event may tell, and of what its line has noted of another lock.
static_assert(TRAPLINE_MOST_LOCK_ENTRIES >= TRAPLINE_MOST_HELD + kRepeatThreads + 2);
static_assert(sizeof(ThreadPage) <= 4096);

}  // namespace trapline::agent
