// The event stream every detector works on, so that all of them can run over one recorded
// execution.
//
// An Event is a plain value: no ownership, no pointers, safe to copy between threads and processes
// and to build in freestanding code. The order of events in a stream is the observed total order.
#pragma once

#include <cstdint>

namespace trapline {

// A logical thread, numbered from 0 (the initial thread) in order of creation. Never reused inside
// one execution, even when the operating system reuses its own thread number.
using ThreadId = std::uint32_t;

// Thread ids lie in [0, kMaxThreads): an epoch packs thread and clock into 64 bits. Whoever brings
// events in from outside (log reader, importer) numbers threads densely and refuses more than this.
inline constexpr ThreadId kMaxThreads = ThreadId{1} << 24;

enum class EventKind : std::uint8_t {
  kRead,           // thread reads [address, address+size), at instruction ip
  kWrite,          // thread writes [address, address+size), at instruction ip
  kAtomicRead,     // atomic load of [address, address+size) with memory order `order`
  kAtomicWrite,    // atomic store
  kAtomicRmw,      // atomic read-modify-write
  kAcquire,        // thread acquires sync object `address` exclusively
  kRelease,        // thread releases sync object `address` held exclusively
  kAcquireShared,  // thread takes the shared (reader) side of sync object `address`
  kReleaseShared,  // thread gives back the shared side
  kHappensBefore,  // thread publishes its clock on key `address` (signal, post, annotation)
  kHappensAfter,   // thread joins the clock published on key `address` (wait, annotation)
  kFork,           // thread starts thread `other`
  kJoin,           // thread waits for the end of thread `other`
  kThreadEnd,      // the thread's last event
  kBarrierEnter,   // thread arrives at barrier `address`
  kBarrierLeave,   // thread leaves barrier `address`: after all that entered the same round
  kClearHistory,   // [address, address+size) is fresh memory from now on (free, munmap, ...)
  kCopyHistory,    // history of [aux, aux+size) becomes the history of [address, address+size)
  kIdentity,       // carrier `other` now runs logical thread `thread`
  kTrack,          // accesses to [address, address+size) are tracked again
  kUntrack,        // accesses to [address, address+size) are not tracked from now on
  kTrackThread,  // `thread` enters a scope whose accesses (aux bit 0) / synchronisation (aux bit 1)
                 // count
  kUntrackThread,  // ... do not count
  kSamplingBegin,  // sampling period starts, for all threads
  kSamplingEnd,
  kMissingBegin,  // thread calls untracked code `ip` that may touch [address, address+size)
  kMissingEnd,
  // Of an execution as it runs, and of a log made of what was told so (LogFilter::kFastTrack):
  kMoment,       // from moment `aux` on the thread's clock is what it is now
  kEarlierRead,  // what the thread read or wrote before, it did again, last at moment `aux`; nobody
  kEarlierWrite,  // else did anything in between that the access could race with
  // Of any execution again:
  kJoinBegin,  // thread begins to wait for the end of `other`, and does nothing before that
  // Of an execution as it runs only (Detector::TakesLateReleases):
  kTick,        // thread gave back something that so far concerns nobody else; from moment `aux` on
                // its clock is what it is now
  kLateRelease  // thread released lock `address` just before moment `aux`, with what it knew then
};

// C++11 memory orders as far as they are known; kSeqCst where nothing better is.
enum class MemoryOrder : std::uint8_t { kRelaxed, kAcquire, kRelease, kAcqRel, kSeqCst };

// Keys of kHappensBefore and kHappensAfter from here on are no addresses of memory, and their
// histories are cleared when nobody will ask for them again.
inline constexpr std::uint64_t kFirstMereKey = std::uint64_t{1} << 60;

// Event::flags: `aux` holds the value of this access (size <= 8); only the predictive engines look
// at it.
inline constexpr std::uint16_t kHasValue = 1;
// Event::flags of an atomic access: it only orders; the access itself was an event of its own.
inline constexpr std::uint16_t kOnlyOrders = 2;

struct Event {
  EventKind kind;
  MemoryOrder order;      // atomics only, else kRelaxed
  std::uint16_t flags;    // kHasValue, kOnlyOrders, else 0
  ThreadId thread;        // who does it
  std::uint64_t address;  // bytes: guest-physical page + offset, so that aliases are one location
  std::uint64_t size;     // bytes; 0 where the kind has no range
  std::uint64_t ip;       // program address of the instruction; 0 = unknown
  std::uint64_t aux;  // kCopyHistory: source address; scopes: bit set; accesses with kHasValue: the
                      // value read or written (little endian, at most 8 bytes); kRelease and
                      // kReleaseShared where there are kMoments: 0 or what one behind it would
                      // say; else 0
  ThreadId other;     // kFork, kJoin, kJoinBegin: the other thread; kIdentity: carrier; else 0
  std::uint32_t stack;  // index of the call stack in the log's stack table; 0 = none
};
static_assert(sizeof(Event) == 48);

// A read or write of memory, atomic or not.
constexpr bool IsAccess(EventKind kind) { return kind <= EventKind::kAtomicRmw; }
constexpr bool IsPlainAccess(EventKind kind) { return kind <= EventKind::kWrite; }
// A repeat that is told late.
constexpr bool IsEarlierAccess(EventKind kind) {
  return kind == EventKind::kEarlierRead || kind == EventKind::kEarlierWrite;
}
constexpr bool IsAtomic(EventKind kind) {
  return kind >= EventKind::kAtomicRead && kind <= EventKind::kAtomicRmw;
}
// An access that changes memory.
constexpr bool IsWrite(EventKind kind) {
  return kind == EventKind::kWrite || kind == EventKind::kAtomicWrite ||
         kind == EventKind::kAtomicRmw;
}
constexpr bool IsOfLock(EventKind kind) {
  return kind >= EventKind::kAcquire && kind <= EventKind::kReleaseShared;
}
constexpr bool IsReleaseOfLock(EventKind kind) {
  return kind == EventKind::kRelease || kind == EventKind::kReleaseShared;
}
constexpr bool IsOfSharedLock(EventKind kind) {
  return kind == EventKind::kAcquireShared || kind == EventKind::kReleaseShared;
}
constexpr bool IsEdge(EventKind kind) {
  return kind == EventKind::kHappensBefore || kind == EventKind::kHappensAfter;
}
// An event that orders threads (atomics do both: they are accesses and synchronise).
constexpr bool IsSynchronisation(EventKind kind) {
  return kind >= EventKind::kAtomicRead && kind <= EventKind::kBarrierLeave;
}
// Loads and rmws that take part in acquire ordering; stores and rmws that take part in release
// ordering.
constexpr bool Acquires(MemoryOrder order) {
  return order == MemoryOrder::kAcquire || order >= MemoryOrder::kAcqRel;
}
constexpr bool Releases(MemoryOrder order) { return order >= MemoryOrder::kRelease; }

}  // namespace trapline
