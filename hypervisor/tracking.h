// Which accesses are checked, and in which order everything is told to the observer.
//
// A trap: tracked code touches a shared page. Before the access is let through, the instruction is
// decoded, what it is about to touch on shared pages is reported, and the thread steps over it with
// all pages in view (GuestThread does the stepping).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hypervisor/address_space.h"
#include "hypervisor/biased_locks.h"
#include "hypervisor/event_batch.h"
#include "hypervisor/former_owners.h"
#include "hypervisor/guest_code_cache.h"
#include "hypervisor/idle_drain.h"
#include "hypervisor/instruction_cache.h"
#include "hypervisor/observer.h"
#include "hypervisor/release_log.h"
#include "hypervisor/repeat_tables.h"
#include "hypervisor/sector_uses.h"
#include "hypervisor/static_runtime.h"
#include "hypervisor/unseen_loads.h"
#include "hypervisor/user_level_threads.h"
#include "hypervisor/word_uses.h"
#include "translator/instruction.h"

namespace trapline {

struct TrackingStatistics {
  std::uint64_t traps = 0;         // accesses that faulted on a shared page
  std::uint64_t chained = 0;       // accesses checked while the thread was stepping anyway
  std::uint64_t checks = 0;        // reads and writes reported
  std::uint64_t unchecked = 0;     // instructions whose accesses could not be told
  std::uint64_t view_changes = 0;  // between tracked and untracked code
  std::uint64_t runtime_events = 0;
  std::uint64_t quiet_moments = 0;
  std::uint64_t idle_drains = 0;   // of the queues, on a processor that had nothing else to do
  std::uint64_t repeats = 0;       // accesses that needed no report (guest-agent/repeats.h)
  std::uint64_t untold_locks = 0;  // times that a lock was given back untold (biased_locks.h)
  SectorUses::Count settled;
};

// Thread-safe. Lock order: AddressSpace's mutex before this one's.
class Tracking {
 public:
  Tracking(AddressSpace& space, SharingPolicy policy, ExecutionObserver& observer,
           std::function<bool(const std::string& path)> is_untracked_module);

  ExecutionObserver& observer() { return observer_; }
  // Whether the observer takes the plain load or store at `ip` for an atomic one. Thread-safe.
  bool IsAtomicCode(std::uint64_t ip) {
    const bool atomic = observer_.IsAtomicCode(ip);
    if (atomic) space_.NoteOrderingCode();
    return atomic;
  }

  // Of a statically linked program; before it runs.
  void SetStaticRuntime(std::unique_ptr<const StaticRuntime> runtime);
  // Null for all other programs.
  const StaticRuntime* static_runtime() const { return static_runtime_.get(); }

  // Code that touches tracked pages runs in `cache` from now on; before the program runs.
  void SetCodeCache(std::unique_ptr<GuestCodeCache> cache);
  // Null: such code is stepped.
  GuestCodeCache* code_cache() { return code_cache_.get(); }

  // More than one thread is or was alive, and accesses are checked.
  bool active() const { return active_.load(std::memory_order_acquire); }

  // --- threads
  void OnStart(Carrier& carrier, pid_t tid);
  // `parent` is about to start `child`. Returns whether tracking starts by it: then the parent must
  // leave View::kWhole.
  bool OnClone(Carrier& parent, const RegisterFile& parent_registers, ThreadId child,
               std::uint64_t stack_start, std::uint64_t stack_end, std::uint64_t thread_pointer,
               std::uint64_t stack_pointer);
  // On the new thread, before it runs.
  void OnThreadRuns(Carrier& carrier, pid_t tid);
  void OnThreadEnd(Carrier& carrier, std::uint64_t clear_child_tid);
  // The thread runs natively, or is about to.
  void OnNative(Carrier& carrier);
  // The thread is the only one left, and everything is ordered before now: tracking pauses until
  // the next thread is made. True: the thread goes to View::kWhole. Cheap when it is not so.
  bool TryQuiet(Carrier& carrier);
  // Whether user-level threads existed although tracking is not active: StartAlone then.
  bool WantsStart();
  // Tracking starts for the program's only thread: several user-level threads are as many threads.
  // The caller leaves View::kWhole.
  void StartAlone(Carrier& carrier);
  // Where the numbers of user-level threads come from; before the program runs. Thread-safe.
  void SetThreadNumbers(std::function<std::uint64_t()> next) {
    user_level_threads_.SetThreadNumbers(std::move(next));
  }
  // Tracking never pauses: StartAlone for every process's first thread. Before the program runs.
  void SetFromStart() { from_start_ = true; }
  // Whether asking TryQuiet makes sense.
  bool alone() const { return alone_.load(std::memory_order_relaxed); }
  // `child` of OnClone was not made after all.
  void OnCloneFailed(ThreadId child);
  // Around fork: nothing is half done in the child. The first lock comes before all others of the
  // monitor, the second one after AddressSpace's.
  void LockBeforeFork();
  void LockForFork();
  void UnlockAfterFork();
  void OnForkedChild(Carrier& survivor, pid_t tid);

  // --- accesses
  // The instruction at `rip`; nothing if it cannot be read or decoded.
  std::optional<Instruction> DecodeAt(std::uint64_t rip) { return instructions_.DecodeAt(rip); }
  // Reports what `instruction` is about to do to shared pages; but for a cmov that does not move.
  // False: nothing, all it touches is the thread's own. When the answer is true for an atomic
  // access, the caller holds the atomic lock until the instruction is carried out: release it with
  // FinishAtomic.
  bool Check(Carrier& carrier, const Instruction& instruction, const RegisterFile& registers,
             bool& holds_atomic_lock);
  void FinishAtomic() { atomic_mutex_.unlock(); }
  // The accesses of an instruction in the code cache that only its registers tell.
  void CheckCached(Carrier& carrier, const AccessSite& site, const RegisterFile& registers);
  // The access that the code cache's instruction at `rip` was about to make has faulted: it was
  // none.
  void Retract(Carrier& carrier, std::uint64_t rip);
  // The calls that the thread with these registers stands in become known to the code cache.
  // Returns them, innermost first.
  std::vector<CallFrame> SetFrames(Carrier& carrier, const RegisterFile& registers);
  // SectorUses::CountWrites for the thread.
  void CountWrites(Carrier& carrier, std::int64_t most);
  // An instruction that cannot be decoded touches `address`.
  void CheckUnknown(Carrier& carrier, std::uint64_t address, bool write,
                    const RegisterFile& registers);
  // The runtime reports an access of its caller (trapline_agent_interface::access).
  void CheckRuntime(Carrier& carrier, std::uint64_t kind, std::uint64_t address, std::uint64_t size,
                    std::uint64_t ip, const RegisterFile& registers);
  // The runtime's part of a statically linked program says something (events.h), seen by the
  // monitor itself: nothing from TRAPLINE_READ on.
  void OnRuntimeEvent(Carrier& carrier, std::uint64_t kind, std::uint64_t address,
                      std::uint64_t size, std::uint64_t ip);
  // The thread that has this thread pointer, of those of a statically linked program.
  std::optional<ThreadId> ThreadByPointer(std::uint64_t thread_pointer);
  // A system call reads or writes the caller's memory.
  void CheckSystemCall(Carrier& carrier, bool write, std::uint64_t address, std::uint64_t size,
                       const RegisterFile& registers);
  // A file descriptor is used, or (`write`) closed: closing it races with using it. Told as
  // accesses to an address that no memory has (DescriptorAddress).
  void CheckDescriptor(Carrier& carrier, bool write, int descriptor, const RegisterFile& registers);
  void OnNewDescriptor(Carrier& carrier, int descriptor);
  void OnEdge(Carrier& carrier, EventKind kind, std::uint64_t key);
  // The kernel gives the lock in the futex at `address` to the thread, or is about to take it.
  void OnKernelLock(Carrier& carrier, std::uint64_t address);
  // The thread is about to wake those that wait at `address`. By itself that orders nothing; but
  // if the runtime has named the object, as it does with pthread_once's control, this may be how it
  // is given back. Queued, as what the agent tells is.
  void OnWake(Carrier& carrier, std::uint64_t address);

  // Hands all queued events to the observer.
  void Drain();
  // Does that, too, while a processor has nothing else to do.
  IdleDrain& idle_drain() { return *idle_drain_; }
  // Sees to it that the thread's queue, which is full, has room: by Drain, unless another thread is
  // just doing that.
  void MakeRoom(Carrier& carrier);
  // ... and all repeats: nothing refers to the code cache's sites any more.
  void DrainAll();
  // Larger tables for a thread that repeats more than its own has room for. It is not in the
  // agent's search for repeats.
  void GrowRepeatTable(Carrier& carrier);

  // Drops what the code cache holds of instructions that count as atomic since this was last
  // called.
  void DropNewlyAtomicCode();

  ExecutionObserver::Handover OnExecute();
  void OnExecuteFailed();
  int OnExit(int status);
  TrackingStatistics statistics();
  void CountViewChange() { view_changes_.fetch_add(1, std::memory_order_relaxed); }
  // Returns how many of its kind there were before.
  std::uint64_t CountTrap(bool chained) {
    return (chained ? chained_ : traps_).fetch_add(1, std::memory_order_relaxed);
  }

 private:
  // ExecutionObserver::SetCallsOf.
  std::vector<CallFrame> CallsOf(ThreadId thread) const;

  // What is known of a thread.
  struct ThreadState {
    UnseenLoads loads;
    std::vector<std::uint32_t> frames;  // number in CacheThread::frames -> InternFrame
    UserLevelThreads::Carried carried;
    FormerOwners::Known known_losses;
    std::optional<unsigned> repeat_slot;                       // RepeatTables::Add
    std::uint64_t first_join_begin = 0, join_begins_took = 0;  // ns of CLOCK_MONOTONIC; 0: none
    std::uint64_t stack_start = 0, stack_end = 0, thread_pointer = 0;  // 0: not known

    // Of the frame that has this number in CacheThread::frames; 0: not known.
    std::uint32_t FrameOf(std::uint64_t number) const {
      return number < frames.size() ? frames[number] : 0;
    }
  };

  // The observer, who then knows of all accesses up to now.
  ExecutionObserver& Observer() { return batch_.Observer(); }
  void QueueLockEventLocked(ThreadId thread, EventKind kind, const agent::QueuedEvent& event);
  // The access may give something away.
  void NoteRelease(EventKind kind, std::uint64_t address, std::uint64_t size) {
    if (IsAtomic(kind) && IsWrite(kind)) releases_.Add(address, size);
  }
  void QueueLocked(ThreadId thread, EventKind kind, const MemoryAccess& access, std::uint64_t ip,
                   std::uint32_t frame);

  // --- repeats
  void TellRepeatLocked(const RepeatedAccess& access);
  // The thread's clock may have changed by what was told last: repeats from `moment` on have it.
  void NewMomentLocked(ThreadId thread, std::uint64_t moment);
  // Many moments of a thread have been told of: so is all that was repeated, and noted of locks.
  void OnMomentLocked(ThreadId thread) {
    if (repeats_.OnMoment(thread, handled_)) locks_.TellAll();
  }
  // From now on; `carrier`: any.
  void NewMomentLocked(ThreadId thread, Carrier& carrier) {
    if (repeats_.started()) NewMomentLocked(thread, carrier.take_number() + 1);
  }
  void NewMomentLocked(Carrier& carrier) { NewMomentLocked(NumberOf(carrier), carrier); }
  // A TRAPLINE_ALLOCATE, TRAPLINE_FREE or TRAPLINE_CLEAR_HISTORY.
  void OnBlockLocked(ThreadId thread, const agent::QueuedEvent& event);
  // The thread touches memory, seen by the monitor.
  void TouchLocked(Carrier& carrier, std::uint64_t address, std::uint64_t size, agent::Touch touch);
  void TellEndedLocked(const RepeatedAccess& repeat);

  // --- biased locks
  void TellLateReleaseLocked(const BiasedLocks::LateRelease& release);
  // The thread has given back a lock untold, event `number`.
  void TickLocked(ThreadId thread, ThreadState& state, std::uint64_t number);
  // What the thread holds untold. It is out of the guest.
  void TellHeldLocked(Carrier& carrier);

  std::uint32_t UserOfLocked(ThreadId thread) const;  // agent::BlockUse
  void NotePlainLocked(const AccessSite& site, const MemoryAccess& access);
  // `thread` is about to release something at the address, in a sector from where others may have
  // left out what they read until now.
  void WatchSettledLocked(ThreadId thread, std::uint64_t address);
  // From now on everything is told.
  void EndLeavingOutLocked() {
    repeats_.End(handled_);
    locks_.End();
    sector_uses_.End();
  }

  EventKind ClassifyLocked(ThreadId thread, const MemoryAccess& access, bool atomic_by_debug_info,
                           bool exchanges);
  void EndEpoch(Carrier& carrier) {
    if (code_cache_) GuestCodeCache::EndEpoch(GuestCodeCache::ThreadOf(carrier));
  }
  void HandleAccessLocked(ThreadId thread, ThreadState& state, const agent::QueuedEvent& event);
  bool QueueIfPlainLocked(ThreadId thread, ThreadState& state, const agent::QueuedEvent& event);
  // What the plain write touched, and its instruction, may be repeated from now on.
  void GrantLocked(ThreadId thread, const ThreadState& state, const AccessSite& site,
                   EventKind kind, const MemoryAccess& access);
  void HandleLongAccessLocked(ThreadId thread, ThreadState& state, const agent::QueuedEvent& event);
  void HandleRuntimeAccessLocked(ThreadId thread, ThreadState& state,
                                 const agent::QueuedEvent& event);
  // All that was known of the program's memory.
  void ForgetMemoryLocked();
  void WatchIfReadLocked(ThreadId thread, const UnseenLoads::Word& word);
  void TakeInWatchedLocked(ThreadId thread, ThreadState& state, bool epoch_ends,
                           std::uint64_t next = 0);
  void ReleaseLocked(ThreadId thread, std::uint64_t key);
  void OnOwnershipLostLocked(ThreadId owner, const std::vector<PageRun>& runs);
  void AcquireLocked(ThreadId thread, std::uint64_t address, std::uint64_t size);
  void AcquireOpenedLocked(ThreadId thread, std::uint64_t start, std::uint64_t end);
  void AcquireFormerLocked(ThreadId thread, std::uint64_t start, std::uint64_t end);
  void AcquireFormerPagesLocked(ThreadId thread, const PageRun& run);
  // The same for an access by the instruction at `ip` that is reported as `kind`, if that is an
  // atomic load or update, or a load that may be atomic. A store that may be is noted.
  void AcquireForAccessLocked(ThreadId thread, const MemoryAccess& access, EventKind kind,
                              std::uint64_t ip);
  // An atomic access of `size` bytes at `address`: a word, or several (cmpxchg16b).
  void NoteAtomicLocked(ThreadId thread, std::uint64_t address, std::uint64_t size);
  void DrainLocked();
  struct Queue;
  void PrefetchLocked(const Queue& queue);
  bool DrainWhileIdle();
  void CatchUpLocked(Carrier& carrier, bool epoch_ends = false);
  void HandleEventLocked(ThreadId thread, ThreadState& state, const agent::QueuedEvent& event);
  void WakeLocked(ThreadId thread, std::uint64_t address);
  void HandleRuntimeEventLocked(ThreadId thread, ThreadState& state, agent::QueuedEvent event);
  // `thread` begins to wait for the end of the one with this thread pointer.
  void OnJoinBeginLocked(ThreadId thread, ThreadState& state, std::uint64_t thread_pointer);
  // The thread touches `address`, its own variables perhaps.
  void NoteStorageLocked(ThreadId thread, ThreadState& state, std::uint64_t address) {
    if (state.carried.task_thread && !state.carried.task_is_of_thread &&
        state.thread_pointer - 1 - address < thread_storage_) {
      user_level_threads_.OnTaskUsesThread(thread, state.carried);
    }
  }
  // Under whose name the thread's events count.
  ThreadId IdentityLocked(ThreadId thread) const;
  // What the runtime asks for by trapline_agent_interface::access and is no access. False: it is.
  bool HandleRequest(Carrier& carrier, std::uint64_t kind, std::uint64_t address,
                     std::uint64_t size, std::uint64_t ip);
  void CopyHistoryLocked(ThreadId thread, std::uint64_t from, std::uint64_t to, std::uint64_t size);
  void MoveLocked(const ViewMove& move);
  // Nothing that any thread has done need be told again: its filter's cells are void.
  void EndAllEpochsLocked();
  void Register(Carrier& carrier);
  void ForgetChangedCodeLocked(Carrier& carrier);
  void UpdateAloneLocked() {
    alone_ = active() && threads_.size() == 1 && starting_ == 0 && !user_level_threads_.existed() &&
             !from_start_;
  }
  // Tells of an access by the instruction that the registers are at; `in_runtime` and `ip`, of
  // others, as in ExecutionObserver::OnAccess.
  void EmitLocked(Carrier& carrier, const MemoryAccess& access, const RegisterFile& registers,
                  EventKind kind);
  void EmitLocked(Carrier& carrier, const Range& bytes, const RegisterFile& registers,
                  EventKind kind, bool in_runtime, std::uint64_t ip);
  static ThreadId NumberOf(Carrier& carrier) {
    return static_cast<ThreadId>(carrier.thread_page().logical_thread);
  }
  Carrier* CarrierOf(ThreadId thread) const;  // null: it has ended

  AddressSpace& space_;
  ExecutionObserver& observer_;
  std::unique_ptr<const StaticRuntime> static_runtime_;
  std::unique_ptr<GuestCodeCache> code_cache_;
  std::atomic<bool> active_{false};
  // AddressSpace::code_version when accesses ceased to count.
  std::optional<std::uint64_t> quiet_code_version_;
  std::atomic<bool> alone_{false};  // only one thread is registered, tracking is active
  std::atomic<std::uint64_t> traps_{0}, chained_{0}, view_changes_{0};

  // Held from the report of an atomic access until it is carried out, so that both happen in the
  // same order for all threads.
  std::mutex atomic_mutex_;

  // Whoever comes while another thread drains, which may take milliseconds, helps it to.
  class HelpingMutex {
   public:
    explicit HelpingMutex(Tracking& tracking) : tracking_(tracking) {}
    void lock();
    void unlock() { mutex_.unlock(); }
    // Whether a thread stands in line. Without it.
    bool contended() const { return waiting_ != 0; }
    // In a forked child, where those that stood in line are not.
    void OnForkedChild() { waiting_ = 0; }

   private:
    Tracking& tracking_;
    std::mutex mutex_;
    std::atomic<unsigned> waiting_{0};
  };
  bool IsDraining() const { return drains_ % 2 != 0; }
  HelpingMutex mutex_{*this};  // the observer, and what follows
  std::vector<Carrier*> threads_;
  unsigned starting_ = 0;             // threads between OnClone and OnThreadRuns
  std::set<std::uint64_t> unjoined_;  // ended, but not known to be ordered before anybody
  struct Queue {
    agent::ThreadPage* page;
    ThreadState* state;
    const agent::QueuedEvent* entries;
    ThreadId thread;
    std::uint64_t tail, head;
  };
  std::vector<Queue> queues_;              // of DrainLocked
  std::atomic<std::uint64_t> drains_ = 0;  // begun and ended; odd: somebody is in DrainLocked
  ReleaseLog releases_;
  std::unordered_map<ThreadId, ThreadState> states_;
  std::unordered_set<std::uint64_t> runtime_keys_;  // that the runtime said "before" of
  std::unordered_map<std::uint64_t, ThreadId> thread_pointers_;  // with static_runtime_ only
  EventBatch batch_;
  WordUses word_uses_;
  FormerOwners former_owners_;
  UserLevelThreads user_level_threads_;
  RepeatTables repeats_;
  BiasedLocks locks_;
  SectorUses sector_uses_;
  // All events before this one have been handled, in DrainLocked and behind it: only repeats of an
  // earlier moment can be told.
  std::uint64_t handled_ = 0;
  std::uint64_t thread_storage_ = 0;  // bytes below a thread pointer that are the thread's own
  bool from_start_ = false;
  TrackingStatistics statistics_;

  InstructionCache instructions_;
  std::unique_ptr<IdleDrain> idle_drain_;
};

}  // namespace trapline
