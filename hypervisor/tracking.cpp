#include "hypervisor/tracking.h"

#include <algorithm>
#include <utility>

#include "hypervisor/clock.h"
#include "hypervisor/guest_copy.h"
#include "hypervisor/guest_thread.h"
#include "hypervisor/virtual_tables.h"

namespace trapline {
namespace {

constexpr std::uint64_t kWord = WordUses::kWord;

EventKind PlainKind(const MemoryAccess& access) {
  // A write is checked against everything a read is checked against, so an instruction that does
  // both counts as a write.
  return access.write ? EventKind::kWrite : EventKind::kRead;
}

constexpr std::uint64_t kDrainStep = 1024;  // events, 100 us: after so many others may go on

// Whether the agent has made the filter void at an event of this kind (events.h).
bool EndsEpoch(std::uint64_t kind) {
  return kind >= 32 || (std::uint32_t{TRAPLINE_IN_EPOCH_EVENTS} >> kind & 1) == 0;
}

agent::Touch TouchOf(EventKind kind) {
  if (IsAtomic(kind)) return IsWrite(kind) ? agent::Touch::kAtomicWrite : agent::Touch::kAtomicRead;
  return IsWrite(kind) ? agent::Touch::kWrite : agent::Touch::kRead;
}

// In place of the number of an event that the agent has not seen.
constexpr std::uint64_t kNotQueued = ~std::uint64_t{0};

ThreadId CurrentThread() {
  const GuestThread* const thread = GuestThread::Current();
  return thread != nullptr ? static_cast<ThreadId>(thread->logical_number()) : 0;
}

std::optional<EventKind> LockEventKind(std::uint64_t kind) {
  switch (kind) {
    case TRAPLINE_ACQUIRE:
      return EventKind::kAcquire;
    case TRAPLINE_RELEASE:
      return EventKind::kRelease;
    case TRAPLINE_ACQUIRE_SHARED:
      return EventKind::kAcquireShared;
    case TRAPLINE_RELEASE_SHARED:
      return EventKind::kReleaseShared;
    default:
      return std::nullopt;
  }
}

// Whether the event's address is that of an object of the program's, or a key like one.
bool NamesObject(std::uint64_t kind) {
  return kind <= TRAPLINE_BARRIER_LEAVE || kind == TRAPLINE_SYNC_DESTROYED ||
         kind == TRAPLINE_SYNC_CREATED || kind == TRAPLINE_SYNC_USED;
}

}  // namespace

Tracking::Tracking(AddressSpace& space, SharingPolicy policy, ExecutionObserver& observer,
                   std::function<bool(const std::string& path)> is_untracked_module)
    : space_(space),
      observer_(observer),
      batch_(observer),
      word_uses_(observer),
      user_level_threads_(batch_),
      repeats_([this] { return threads_.front()->next_event(); },
               [this](const RepeatedAccess& access) { TellRepeatLocked(access); }),
      locks_([this] { return threads_.front()->next_event(); },
             [this](const BiasedLocks::LateRelease& release) { TellLateReleaseLocked(release); }) {
  observer_.SetCallsOf([this](ThreadId thread) { return CallsOf(thread); });
  idle_drain_ = std::make_unique<IdleDrain>([this] { return DrainWhileIdle(); });
  TrackingRules rules;
  rules.policy = policy;
  rules.is_untracked_module = std::move(is_untracked_module);
  rules.on_code_mapped = [this](const std::string& path, const Range& code, std::uint64_t offset,
                                bool counts) {
    const std::lock_guard lock(mutex_);
    return Observer().OnCodeMapped(path, code, offset, counts);
  };
  rules.on_fresh_memory = [this](std::uint64_t start, std::uint64_t end) {
    if (!active()) return;
    const std::lock_guard lock(mutex_);
    DrainLocked();
    word_uses_.Forget(start, end);
    word_uses_.OnMappingsChanged();
    former_owners_.Forget(start, end);
    repeats_.Forget(start, end);
    sector_uses_.Forget(start, end);
    Observer().OnFreshMemory(CurrentThread(), start, end);
  };
  rules.catch_up = [this](bool claims) {
    if (active() && (!claims || former_owners_.existed())) Drain();
  };
  rules.is_catching_up = [this] { return IsDraining(); };
  rules.on_ownership_lost = [this](std::uint64_t owner, const std::vector<PageRun>& runs,
                                   std::uint64_t load) {
    if (!active()) return;
    const bool may_be_atomic = load != 0 && observer_.MayLoadAtomically(load);
    const std::lock_guard lock(mutex_);
    DrainLocked();
    OnOwnershipLostLocked(static_cast<ThreadId>(owner), runs);
    // Who takes the pages may go on reading, unseen, what it has read before; or has come to look
    // at a word that was changed atomically, which met nobody that had seen it.
    const ThreadId taker = CurrentThread();
    const auto known = states_.find(taker);
    if (may_be_atomic || (known != states_.end() && known->second.loads.may_poll())) {
      for (const PageRun& run : runs) AcquireFormerPagesLocked(taker, run);
    }
  };
  rules.may_order = [this](const std::vector<Range>& code) {
    const std::lock_guard lock(mutex_);
    return Observer().MayOrderItself(code);
  };
  rules.on_claimed = [this](std::uint64_t owner, const PageRun& run) {
    if (!active()) return;
    const std::lock_guard lock(mutex_);
    if (former_owners_.empty()) return;
    DrainLocked();
    AcquireFormerPagesLocked(static_cast<ThreadId>(owner), run);
  };
  rules.on_opened = [this](std::uint64_t thread, const PageRun& run) {
    if (!active()) return;
    const std::lock_guard lock(mutex_);
    DrainLocked();
    // What it does there is not seen.
    sector_uses_.Touch(
        UserOfLocked(static_cast<ThreadId>(thread)), run.start, run.end - run.start,
        run.state == PageState::kReadOnly ? agent::SectorTouch::kRead : agent::SectorTouch::kWrite);
    space_.ForEachCanonical(run.start, run.end - run.start, [&](const Range& part) {
      AcquireOpenedLocked(static_cast<ThreadId>(thread), part.start, part.end);
      if (run.state != PageState::kReadOnly) {
        word_uses_.NoteUnseenExchanges(part.start, part.end,
                                       IdentityLocked(static_cast<ThreadId>(thread)));
      }
    });
  };
  rules.on_moved = [this](std::uint64_t from, std::uint64_t to, std::uint64_t length) {
    if (!active()) return;
    const std::lock_guard lock(mutex_);
    DrainLocked();
    MoveLocked({from, to, length});
  };
  rules.on_views_changed = [this](const std::vector<ViewMove>& moves,
                                  const std::function<void()>& publish) {
    const std::lock_guard lock(mutex_);
    EndLeavingOutLocked();  // all that knows memory by one address
    if (active()) {
      DrainLocked();
      locks_.TellAll();
      for (const ViewMove& move : moves) MoveLocked(move);
    }
    publish();
  };
  rules.on_shared_memory_ends = [this](std::uint64_t start, std::uint64_t end) {
    const std::lock_guard lock(mutex_);
    Observer().OnSharedMemoryEnds(start, end);
  };
  space_.SetTrackingRules(std::move(rules));
}

void Tracking::SetStaticRuntime(std::unique_ptr<const StaticRuntime> runtime) {
  if (!runtime) return;
  static_runtime_ = std::move(runtime);
  // What the runtime's functions mean is seen when they touch memory: they must not do so unseen.
  space_.ShareEveryPage();
  for (const StaticRuntime::Range& pages : static_runtime_->unwatched_pages())
    space_.SetUntrackedCode(pages.begin, pages.end);
  observer_.SetRuntimeCode(
      [this](std::uint64_t address) { return static_runtime_->IsRuntime(address); });
}

// --- threads

void Tracking::Register(Carrier& carrier) {
  agent::ThreadPage& page = carrier.thread_page();
  page.queue_head = page.queue_tail = 0;
  if (code_cache_) GuestCodeCache::Reset(GuestCodeCache::ThreadOf(carrier));
  page.events = 1;
  page.tracking = active() ? 1 : 0;
  threads_.push_back(&carrier);
  idle_drain_->SetThreads(static_cast<unsigned>(threads_.size()));
  UpdateAloneLocked();
  const std::optional<unsigned> slot = repeats_.Add(page, NumberOf(carrier));
  sector_uses_.Add(page, slot ? *slot + 1 : agent::kUsedByOthers);
  locks_.Add(page, slot);
  if (!slot) return;
  states_[NumberOf(carrier)].repeat_slot = slot;
  if (active()) NewMomentLocked(carrier);
}

void Tracking::OnStart(Carrier& carrier, pid_t tid) {
  const std::lock_guard lock(mutex_);
  Register(carrier);
  Observer().OnStart(tid);
}

bool Tracking::OnClone(Carrier& parent, const RegisterFile& parent_registers, ThreadId child,
                       std::uint64_t stack_start, std::uint64_t stack_end,
                       std::uint64_t thread_pointer, std::uint64_t stack_pointer) {
  space_.Renew(parent);
  EndEpoch(parent);
  const std::lock_guard lock(mutex_);
  CatchUpLocked(parent, true);
  const bool starts = !active_.exchange(true);
  ++starting_;
  alone_ = false;
  if (starts) ForgetChangedCodeLocked(parent);
  parent.thread_page().tracking = 1;
  if (static_runtime_) {
    thread_pointers_[parent_registers.fs_base] = NumberOf(parent);
    if (thread_pointer != 0) thread_pointers_[thread_pointer] = child;
  }
  states_[NumberOf(parent)].thread_pointer = parent_registers.fs_base;
  ThreadState& state = states_[child];
  state.stack_start = stack_start;
  state.stack_end = stack_end;
  state.thread_pointer = thread_pointer;
  // The C library puts a thread's variables between its stack and its thread pointer.
  constexpr std::uint64_t kMostStorage = 64 << 20;
  if (stack_pointer != 0 && stack_pointer < thread_pointer &&
      thread_pointer - stack_pointer <= kMostStorage) {
    thread_storage_ = thread_pointer - stack_pointer;
  }
  repeats_.Forget(stack_start, stack_end);
  Observer().OnThreadStart(NumberOf(parent), child, parent_registers, stack_start, stack_end,
                           thread_pointer);
  NewMomentLocked(parent);
  return starts;
}

void Tracking::OnThreadRuns(Carrier& carrier, pid_t tid) {
  const std::lock_guard lock(mutex_);
  --starting_;
  Register(carrier);
  Observer().OnThreadRuns(NumberOf(carrier), tid);
}

void Tracking::OnThreadEnd(Carrier& carrier, std::uint64_t clear_child_tid) {
  const ThreadId thread = NumberOf(carrier);
  Range stack{};
  {
    const std::lock_guard lock(mutex_);
    stack = {states_[thread].stack_start, states_[thread].stack_end};
  }
  space_.Seal(carrier, stack);
  const std::lock_guard lock(mutex_);
  CatchUpLocked(carrier, true);
  if (clear_child_tid != 0) {
    // Who waits for the end without our runtime's help looks at this word.
    batch_.AddEdge(thread, EventKind::kHappensBefore, clear_child_tid);
    word_uses_.NoteClearedByKernel(clear_child_tid);
    const UnseenLoads::Word word{clear_child_tid, sizeof(std::uint32_t)};
    releases_.Add(word.address, word.size);
    WatchIfReadLocked(thread, word);
    TouchLocked(carrier, word.address, word.size, agent::Touch::kAtomicWrite);
    WatchSettledLocked(thread, word.address);
  }
  if (IdentityLocked(thread) != thread) Observer().OnFiberSwitch(thread, thread, false, 0, 0);
  ThreadState& state = states_[thread];
  if (state.repeat_slot) {
    sector_uses_.Remove(carrier.thread_page(), *state.repeat_slot + 1);
    locks_.Remove(*state.repeat_slot);
    // What others have just found there, and are about to tell.
    carrier.take_number();
    DrainLocked();
    repeats_.Remove(*state.repeat_slot);
  }
  repeats_.Forget(state.stack_start, state.stack_end);
  Observer().OnThreadEnd(thread);
  unjoined_.insert(thread);
  std::erase(threads_, &carrier);
  idle_drain_->SetThreads(static_cast<unsigned>(threads_.size()));
  states_.erase(thread);
  carrier.thread_page().events = carrier.thread_page().tracking = 0;
  UpdateAloneLocked();
}

void Tracking::OnNative(Carrier& carrier) {
  if (carrier.was_native()) return;
  const std::lock_guard lock(mutex_);
  Observer().OnNative(NumberOf(carrier));
}

bool Tracking::TryQuiet(Carrier& carrier) {
  if (!alone_.load(std::memory_order_relaxed)) return false;
  {
    const std::lock_guard lock(mutex_);
    DrainLocked();
    if (threads_.size() != 1 || starting_ != 0 || !unjoined_.empty() || !active() ||
        user_level_threads_.existed()) {
      return false;
    }
    active_ = false;
    alone_ = false;
    carrier.thread_page().tracking = carrier.thread_page().held_count = 0;
    ForgetMemoryLocked();
    for (auto& [thread, state] : states_) state.loads.ForgetWatched();
    repeats_.Clear();
    locks_.Clear();
    sector_uses_.Clear();
    ++statistics_.quiet_moments;
    quiet_code_version_ = space_.code_version();
    Observer().OnQuiet(NumberOf(carrier));
  }
  space_.ForgetStates(&carrier);
  return true;
}

// Accesses count again. Nobody was told of memory that was given back meanwhile: other code may be
// where some is that the observer knows.
void Tracking::ForgetChangedCodeLocked(Carrier& carrier) {
  if (!quiet_code_version_ || *quiet_code_version_ == space_.code_version()) return;
  word_uses_.OnMappingsChanged();
  Observer().OnFreshMemory(NumberOf(carrier), 0, kUserAddressEnd);
}

bool Tracking::WantsStart() {
  const std::lock_guard lock(mutex_);
  return !active() && user_level_threads_.existed();
}

void Tracking::StartAlone(Carrier& carrier) {
  space_.Renew(carrier);
  EndEpoch(carrier);
  const std::lock_guard lock(mutex_);
  CatchUpLocked(carrier, true);
  active_ = true;
  ForgetChangedCodeLocked(carrier);
  UpdateAloneLocked();
  carrier.thread_page().tracking = 1;
  NewMomentLocked(carrier);
}

void Tracking::OnCloneFailed(ThreadId child) {
  const std::lock_guard lock(mutex_);
  --starting_;
  states_.erase(child);
  Observer().OnThreadEnd(child);
  UpdateAloneLocked();
}

void Tracking::LockForFork() {
  mutex_.lock();
  instructions_.mutex().lock();
  DrainLocked();
  observer_.LockForFork();
}

void Tracking::LockBeforeFork() {
  atomic_mutex_.lock();
  // Its holder may ask for AddressSpace's mutex.
  if (code_cache_) code_cache_->mutex().lock();
}

void Tracking::UnlockAfterFork() {
  observer_.UnlockAfterFork();
  instructions_.mutex().unlock();
  mutex_.unlock();
  if (code_cache_) code_cache_->mutex().unlock();
  atomic_mutex_.unlock();
}

void Tracking::OnForkedChild(Carrier& survivor, pid_t tid) {
  space_.ForgetStates();
  const std::lock_guard lock(mutex_);
  mutex_.OnForkedChild();
  static_cast<void>(idle_drain_.release());  // its thread is not in the child
  idle_drain_ = std::make_unique<IdleDrain>([this] { return DrainWhileIdle(); });
  threads_.clear();
  starting_ = 0;
  unjoined_.clear();
  user_level_threads_.Clear();
  ForgetMemoryLocked();
  thread_pointers_.clear();
  states_.clear();
  if (code_cache_) code_cache_->ForgetThreads();
  active_ = false;
  quiet_code_version_ = space_.code_version();
  locks_.Clear();
  repeats_.RemoveAll();
  sector_uses_.RemoveAll();
  Register(survivor);
  statistics_ = {};
  traps_ = chained_ = view_changes_ = 0;
  Observer().OnFork(NumberOf(survivor), tid);
}

// --- events

// What events to come are accesses of, mostly: memory that is far away by then.
inline void Tracking::PrefetchLocked(const Queue& queue) {
  constexpr std::uint64_t kSoon = 6, kLater = 12, kMuchLater = 18;
  const std::uint64_t left = queue.head - queue.tail;
  const auto ahead = [&](std::uint64_t events) -> const agent::QueuedEvent& {
    return queue.entries[(queue.tail + events) % TRAPLINE_QUEUE_ENTRIES];
  };
  if (left > kMuchLater) word_uses_.PrefetchPage(ahead(kMuchLater).address);
  if (left > kLater) {
    const agent::QueuedEvent& event = ahead(kLater);
    __builtin_prefetch(reinterpret_cast<const void*>(event.ip));  // its site
    word_uses_.PrefetchWords(event.address);
    if (queue.state->repeat_slot)
      RepeatTables::PrefetchLine(*queue.state->repeat_slot, event.address);
  }
  if (left <= kSoon || ahead(kSoon).kind != TRAPLINE_QUEUED_ACCESS) return;
  const std::uint64_t address = ahead(kSoon).address;
  if (word_uses_.PrefetchAtomic(address) && repeats_.started()) RepeatTables::PrefetchUse(address);
}

// All events in one order: of the threads' queues, each of which is in order, the earliest first.
// What the slow path queues has the number of the next event: it comes before that one.
void Tracking::DrainLocked() {
  const auto key = [](const Queue& queue) {
    const agent::QueuedEvent& event = queue.entries[queue.tail % TRAPLINE_QUEUE_ENTRIES];
    bool numbered = event.kind < TRAPLINE_QUEUED_FRAME;
    if (event.kind == TRAPLINE_QUEUED_ACCESS)
      numbered = reinterpret_cast<const AccessSite*>(event.ip)->atomic;
    return event.sequence * 2 + (numbered ? 1 : 0);
  };
  queues_.clear();
  if (threads_.empty()) return;
  ++drains_;
  batch_.Defer();
  std::uint64_t handled = 0;  // since helpers were woken
  // The queues are not looked at in one moment. What got its number since the first look waits: in
  // a queue seen later it may follow from what was not yet in one seen before.
  const std::uint64_t next_event = threads_.front()->next_event();
  const std::uint64_t limit = 2 * next_event;
  for (Carrier* const carrier : threads_) {
    agent::ThreadPage& page = carrier->thread_page();
    const std::uint64_t head = __atomic_load_n(&page.queue_head, __ATOMIC_ACQUIRE);
    if (head == page.queue_tail) continue;
    const ThreadId thread = NumberOf(*carrier);
    queues_.push_back(
        {&page, &states_[thread],
         static_cast<const agent::QueuedEvent*>(carrier->ThreadRegion(TRAPLINE_EVENT_QUEUE)),
         thread, page.queue_tail, head});
  }
  while (!queues_.empty()) {
    std::size_t first = 0;
    std::uint64_t least = ~0ull, next = ~0ull;
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      const std::uint64_t at = key(queues_[i]);
      if (at < least) {
        next = least;
        least = at;
        first = i;
      } else {
        next = std::min(next, at);
      }
    }
    if (least > limit) break;
    next = std::min(next, limit);
    Queue& queue = queues_[first];
    const std::uint64_t begin = queue.tail;
    do {
      const agent::QueuedEvent& event = queue.entries[queue.tail % TRAPLINE_QUEUE_ENTRIES];
      PrefetchLocked(queue);
      handled_ = std::max(handled_, event.sequence + 1);
      if (event.kind == TRAPLINE_QUEUED_TICK) {
        TickLocked(queue.thread, *queue.state, event.sequence);
      } else if (event.kind != TRAPLINE_QUEUED_ACCESS ||
                 !QueueIfPlainLocked(queue.thread, *queue.state, event)) {
        HandleEventLocked(queue.thread, *queue.state, event);
        if (event.kind < TRAPLINE_QUEUED_FRAME && EndsEpoch(event.kind) &&
            event.kind != TRAPLINE_QUEUED_LATE_RELEASE && !LockEventKind(event.kind)) {
          NewMomentLocked(queue.thread, event.sequence + 1);
        }
      }
      ++queue.tail;
    } while (queue.tail != queue.head && queue.tail - begin < kDrainStep && key(queue) <= next);
    __atomic_store_n(&queue.page->queue_tail, queue.tail, __ATOMIC_RELEASE);
    handled += queue.tail - begin;
    if (handled >= kDrainStep) {
      handled = 0;
      observer_.WakeHelpers();
    }
    if (queue.tail == queue.head)
      queues_.erase(queues_.begin() + static_cast<std::ptrdiff_t>(first));
  }
  // Of what has no number of its own, more may come that belongs before this one.
  handled_ = next_event;
  repeats_.Weigh(statistics_.checks, handled_);
  sector_uses_.Age();
  batch_.Finish();
  ++drains_;
  observer_.WakeHelpers();
}

// Programs that share much do little else: such events are not worth an end of what is told at
// once (400 ns each, in barnes and radiosity).
void Tracking::QueueLockEventLocked(ThreadId thread, EventKind kind,
                                    const agent::QueuedEvent& event) {
  Event& look = batch_.Add();
  look.kind = EventKind::kAtomicRead;
  look.thread = thread;
  Event& lock = batch_.Add();
  lock.kind = kind;
  lock.thread = thread;
  lock.address = event.address;
  lock.size = event.size;
  lock.ip = event.ip;
  if (repeats_.started() && IsReleaseOfLock(kind)) {
    lock.aux = event.sequence + 1;  // 0 if the agent has not queued it
    OnMomentLocked(thread);
  }
  batch_.TellIfMany();
  locks_.OnTold(thread, !IsReleaseOfLock(kind));
}

// --- biased locks

void Tracking::TickLocked(ThreadId thread, ThreadState& state, std::uint64_t number) {
  TakeInWatchedLocked(thread, state, true, number + 1);
  ++statistics_.untold_locks;
  Event& tick = batch_.Add();
  tick.kind = EventKind::kTick;
  tick.thread = thread;
  tick.aux = number + 1;
  if (state.repeat_slot) locks_.OnTick(*state.repeat_slot, number);
  OnMomentLocked(thread);
  batch_.TellIfMany();
}

void Tracking::TellLateReleaseLocked(const BiasedLocks::LateRelease& release) {
  Event& event = batch_.Add();
  event.kind = EventKind::kLateRelease;
  event.thread = release.thread;
  event.address = space_.Canonical(release.lock);
  event.aux = release.number + 1;
  batch_.TellIfMany();
}

void Tracking::TellHeldLocked(Carrier& carrier) {
  agent::ThreadPage& page = carrier.thread_page();
  for (std::uint64_t i = 0; i < page.held_count; ++i) {
    const auto& [address, size, ip] = page.held[i];
    QueueLockEventLocked(NumberOf(carrier), EventKind::kAcquire,
                         {handled_, TRAPLINE_ACQUIRE, space_.Canonical(address), size, ip});
  }
  page.held_count = 0;
}

void Tracking::DropNewlyAtomicCode() {
  if (!code_cache_ || !batch_.has_newly_atomic_code()) return;
  std::vector<Range> outdated;
  {
    const std::lock_guard lock(mutex_);
    outdated = batch_.TakeNewlyAtomicCode();
  }
  if (!outdated.empty()) code_cache_->Invalidate(outdated);
}

inline void Tracking::QueueLocked(ThreadId thread, EventKind kind, const MemoryAccess& access,
                                  std::uint64_t ip, std::uint32_t frame) {
  // It has faulted, or will, if not for programs that may map memory below vm.mmap_min_addr: told
  // before that, it may be drained before it is retracted.
  constexpr std::uint64_t kLowestAddress = 64 << 10;
  if (access.address < kLowestAddress) [[unlikely]]
    return;
  NoteRelease(kind, access.address, access.size);
  Event& event = batch_.Add();
  event.kind = kind;
  event.thread = thread;
  event.address = access.address;
  event.size = access.size;
  event.ip = ip;
  event.stack = frame;
  batch_.TellIfMany();
}

// Nearly all that is queued: what HandleAccessLocked does where nothing is known that could make
// more of it than a plain access. False: nothing has been done.
inline bool Tracking::QueueIfPlainLocked(ThreadId thread, ThreadState& state,
                                         const agent::QueuedEvent& event) {
  const AccessSite& site = *reinterpret_cast<const AccessSite*>(event.ip);
  const std::uint64_t address = event.address;
  if (site.atomic || site.locked || site.done || state.carried.task_thread ||
      space_.has_aliases() || state.loads.IsBehind(releases_)) {
    return false;
  }
  WordUses::Page& page = word_uses_.PageOf(address);
  if (!WordUses::IsSurelyPlain(page, address, site.write)) return false;
  if (!site.write && word_uses_.IsClearedByKernel(address)) return false;
  ++statistics_.checks;
  const MemoryAccess access{address, site.size, site.read, site.write, false};
  if (site.write && site.size <= kWord) word_uses_.NotePlainWrite(page, address);
  const EventKind kind = PlainKind(access);
  AcquireForAccessLocked(thread, access, kind, site.rip);
  QueueLocked(thread, kind, access, site.rip, state.FrameOf(event.size));
  if (site.write) {
    GrantLocked(thread, state, site, kind, access);
  } else {
    NotePlainLocked(site, access);
    state.loads.Note(access, kind);
  }
  return true;
}

// --- repeats

void Tracking::SetCodeCache(std::unique_ptr<GuestCodeCache> cache) {
  code_cache_ = std::move(cache);
  if (code_cache_->looks_for_repeats()) repeats_.Start(code_cache_->repeats_after());
  if (code_cache_->biases_locks()) locks_.Start(code_cache_->repeats_after());
  if (code_cache_->leaves_out_settled_sectors()) sector_uses_.Start(code_cache_->settle_after());
}

void Tracking::TellRepeatLocked(const RepeatedAccess& access) {
  if (!access.write) {
    const MemoryAccess read{access.address, access.size, true, false, false};
    const bool synchronises =
        access.locked || ((word_uses_.IsReadAtomically(access.address, access.size) ||
                           word_uses_.IsAtomicVariable(access.address, access.size)) &&
                          !observer_.IsPlain(access.ip, access.address));
    // Should the word turn out to be read atomically, this was such a load. What was read in an
    // epoch that is over has not seen what ends the peace.
    if (const auto state = states_.find(access.thread);
        state != states_.end() && access.moment >= state->second.loads.epoch_start()) {
      state->second.loads.Note(read, synchronises ? EventKind::kAtomicRead : EventKind::kRead);
    }
    if (synchronises) return;  // nobody knew when it was repeated
  }
  Event& event = batch_.Add();
  event.kind = access.write ? EventKind::kEarlierWrite : EventKind::kEarlierRead;
  event.thread = access.thread;
  event.address = access.address;
  event.size = access.size;
  event.ip = access.ip;
  event.aux = access.moment;
  batch_.TellIfMany();
}

void Tracking::NewMomentLocked(ThreadId thread, std::uint64_t moment) {
  if (!repeats_.started()) return;
  Event& event = batch_.Add();
  event.kind = EventKind::kMoment;
  event.thread = thread;
  event.aux = moment;
  OnMomentLocked(thread);
}

std::uint32_t Tracking::UserOfLocked(ThreadId thread) const {
  const auto known = states_.find(thread);
  return known != states_.end() && known->second.repeat_slot ? *known->second.repeat_slot + 1
                                                             : std::uint32_t{agent::kUsedByOthers};
}

void Tracking::OnBlockLocked(ThreadId thread, const agent::QueuedEvent& event) {
  if (!active()) return;
  // Who still uses what is freed here is told from now on.
  if (event.kind == TRAPLINE_FREE) {
    sector_uses_.Touch(UserOfLocked(thread), event.address, event.size, agent::SectorTouch::kWrite);
  }
  repeats_.OnBlock(thread, event.kind == TRAPLINE_FREE, event.address, event.address + event.size,
                   event.sequence);
}

// What ends by an event of which the agent did not know that it would. What comes after events that
// are still queued would be told too early, and look like a race: it is left out.
void Tracking::TellEndedLocked(const RepeatedAccess& repeat) {
  if (repeat.moment < handled_) {
    TellRepeatLocked(repeat);
  } else if (const auto other = states_.find(repeat.thread);
             !repeat.write && other != states_.end()) {
    other->second.loads.Watch({repeat.address, repeat.size});
  }
}

void Tracking::TouchLocked(Carrier& carrier, std::uint64_t address, std::uint64_t size,
                           agent::Touch touch) {
  const auto user = static_cast<std::uint32_t>(carrier.thread_page().repeat_user);
  sector_uses_.Touch(user, address, size, agent::SectorTouchOf(touch));
  repeats_.Touch(user, address, size, touch, [&](const RepeatedAccess& access) {
    if (access.moment >= handled_) {
      carrier.take_number();
      DrainLocked();
    }
    TellRepeatLocked(access);
  });
}

// `thread` may have seen what was released to [address, address + size) by now; natively, too.
void Tracking::AcquireLocked(ThreadId thread, std::uint64_t address, std::uint64_t size) {
  batch_.AddOrder(thread, EventKind::kAtomicRead, MemoryOrder::kAcquire, address, size);
  if (word_uses_.IsClearedByKernel(address))
    batch_.AddEdge(thread, EventKind::kHappensAfter, address);
  AcquireFormerLocked(thread, address, address + size);
}

// All that was queued comes before what `thread` does now, and so does what it may have seen.
void Tracking::CatchUpLocked(Carrier& carrier, bool epoch_ends) {
  const ThreadId thread = NumberOf(carrier);
  DrainLocked();
  TellHeldLocked(carrier);
  if (const auto known = states_.find(thread); known != states_.end())
    TakeInWatchedLocked(thread, known->second, epoch_ends || !code_cache_);
}

// What was released to the words that the thread watches, it may have seen. `next`: of the event at
// which its epoch ends the number and one; 0: not known.
void Tracking::TakeInWatchedLocked(ThreadId thread, ThreadState& state, bool epoch_ends,
                                   std::uint64_t next) {
  if (state.loads.IsBehind(releases_)) {
    state.loads.TakeIn(releases_, [&](const UnseenLoads::Word& word) {
      AcquireLocked(thread, word.address, word.size);
    });
  }
  if (epoch_ends) state.loads.EndEpoch(next);
}

void Tracking::HandleAccessLocked(ThreadId thread, ThreadState& state,
                                  const agent::QueuedEvent& event) {
  const AccessSite& site = *reinterpret_cast<const AccessSite*>(event.ip);
  TakeInWatchedLocked(thread, state, site.atomic && site.write, event.sequence + 1);
  NoteStorageLocked(thread, state, event.address);
  const std::uint32_t frame = state.FrameOf(event.size);
  MemoryAccess access{space_.Canonical(event.address), site.size, site.read, site.write,
                      site.locked};
  if (site.done) {
    AcquireLocked(thread, access.address, access.size);
    return;
  }
  ++statistics_.checks;
  const bool by_debug_info =
      !site.locked && (site.atomic || (site.size <= kWord &&
                                       word_uses_.IsAtomicVariable(access.address, access.size)));
  EventKind kind = ClassifyLocked(thread, access, by_debug_info, site.exchange);
  const bool plain = IsAtomic(kind) && !site.locked && observer_.IsPlain(site.rip, access.address);
  if (plain) kind = PlainKind(access);
  AcquireForAccessLocked(thread, access, kind, site.rip);
  QueueLocked(thread, kind, access, site.rip, frame);
  if (IsAtomic(kind) && IsWrite(kind)) NewMomentLocked(thread, event.sequence + 1);
  if (!site.atomic && !access.write && !plain) state.loads.Note(access, kind);
  if (kind == EventKind::kRead) NotePlainLocked(site, access);
  if (IsAtomic(kind)) {
    // The agent does not always know.
    sector_uses_.Touch(agent::kUsedByOthers, access.address, access.size,
                       agent::SectorTouch::kAtomic);
    repeats_.Touch(agent::kUsedByOthers, access.address, access.size, agent::Touch::kAtomicRead,
                   [this](const RepeatedAccess& repeat) { TellEndedLocked(repeat); });
  } else if (access.write && !plain && access.address == event.address) {
    // A word that is atomic elsewhere may be so for another of the thread's instructions.
    GrantLocked(thread, state, site, kind, access);
  }
}

// A read that is one whatever the word turns out to be.
inline void Tracking::NotePlainLocked(const AccessSite& site, const MemoryAccess& access) {
  if (!site.plain && !observer_.MayBeAtomicCode(site.rip, access.address)) site.plain = true;
}

inline void Tracking::GrantLocked(ThreadId thread, const ThreadState& state, const AccessSite& site,
                                  EventKind kind, const MemoryAccess& access) {
  if (repeats_.started() && state.repeat_slot &&
      observer_.MayRepeat(thread, kind, access.address, access.size, site.rip)) {
    repeats_.Grant(*state.repeat_slot, site, access.address);
  }
}

void Tracking::HandleLongAccessLocked(ThreadId thread, ThreadState& state,
                                      const agent::QueuedEvent& event) {
  const AccessSite& site = *reinterpret_cast<const AccessSite*>(event.ip);
  TakeInWatchedLocked(thread, state, false);
  const std::uint32_t frame = state.FrameOf(event.kind >> 32);
  const bool write = static_cast<std::uint32_t>(event.kind) == TRAPLINE_QUEUED_LONG_WRITE;
  space_.ForEachCanonical(event.address, event.size, [&](const Range& part) {
    ++statistics_.checks;
    const MemoryAccess access{part.start, part.end - part.start, !write, write, false};
    const EventKind kind = ClassifyLocked(thread, access, false, false);
    AcquireForAccessLocked(thread, access, kind, site.rip);
    QueueLocked(thread, kind, access, site.rip, frame);
    if (!write) state.loads.Note(access, kind);
  });
}

void Tracking::HandleRuntimeAccessLocked(ThreadId thread, ThreadState& state,
                                         const agent::QueuedEvent& event) {
  TakeInWatchedLocked(thread, state, false);
  NoteStorageLocked(thread, state, event.address);
  const std::uint32_t frame = state.FrameOf(event.kind >> 32);
  const EventKind kind = static_cast<std::uint32_t>(event.kind) == TRAPLINE_WRITE
                             ? EventKind::kWrite
                             : EventKind::kRead;
  space_.ForEachCanonical(event.address, event.size, [&](const Range& part) {
    ++statistics_.checks;
    Observer().OnCachedRuntimeAccess(thread, kind, part.start, part.end - part.start, event.ip,
                                     frame);
  });
}

void Tracking::CheckCached(Carrier& carrier, const AccessSite& site,
                           const RegisterFile& registers) {
  const MemoryAccessList accesses = Accesses(*site.instruction, registers);
  const std::lock_guard lock(mutex_);
  const ThreadId thread = NumberOf(carrier);
  CatchUpLocked(carrier);
  if (!accesses.complete() || !site.instruction->effects_known) ++statistics_.unchecked;
  for (MemoryAccess access : accesses) {
    NoteStorageLocked(thread, states_[thread], access.address);
    access.address = space_.Canonical(access.address);
    if (site.done) {
      AcquireLocked(thread, access.address, access.size);
      continue;
    }
    const EventKind kind = ClassifyLocked(thread, access, false, site.exchange);
    AcquireForAccessLocked(thread, access, kind, site.rip);
    EmitLocked(carrier, access, registers, kind);
    if (!access.write) states_[thread].loads.Note(access, kind);
  }
}

void Tracking::Retract(Carrier& carrier, std::uint64_t rip) {
  const std::lock_guard lock(mutex_);
  agent::ThreadPage& page = carrier.thread_page();
  const auto* const entries =
      static_cast<const agent::QueuedEvent*>(carrier.ThreadRegion(TRAPLINE_EVENT_QUEUE));
  // What the access has ended is told after it, and then it stays.
  std::uint64_t head = page.queue_head;
  const auto last_entry = [&]() -> const agent::QueuedEvent& {
    return entries[(head - 1) % TRAPLINE_QUEUE_ENTRIES];
  };
  while (head != page.queue_tail &&
         static_cast<std::uint32_t>(last_entry().kind) == TRAPLINE_QUEUED_REPEAT) {
    --head;
  }
  if (head == page.queue_tail) return;
  const agent::QueuedEvent& last = last_entry();
  if (last.kind != TRAPLINE_QUEUED_ACCESS) return;
  const AccessSite& site = *reinterpret_cast<const AccessSite*>(last.ip);
  if (site.rip != rip) return;
  if (const auto& slot = states_[NumberOf(carrier)].repeat_slot; slot && repeats_.started())
    RepeatTables::Untell(*slot, site, last.address);
  if (head == page.queue_head) --page.queue_head;
  EndEpoch(carrier);
}

void Tracking::CountWrites(Carrier& carrier, std::int64_t most) {
  // Without the mutex, which others have for milliseconds while they drain.
  agent::ThreadPage& page = carrier.thread_page();
  sector_uses_.CountWrites(page, static_cast<std::uint32_t>(page.repeat_user), most);
}

std::vector<CallFrame> Tracking::SetFrames(Carrier& carrier, const RegisterFile& registers) {
  // Without the mutex, which others have for milliseconds while they drain.
  std::vector<CallFrame> frames = observer_.CallFrames(registers);
  CacheThread& thread = GuestCodeCache::ThreadOf(carrier);
  std::size_t at = 0;
  thread.frames[at++] = {};  // nothing is known of what called the outermost one
  for (std::size_t i = frames.size(); i-- > 0;)
    thread.frames[at++] = {~frames[i].slot, frames[i].return_address};
  thread.next_frame = TRAPLINE_CACHE_THREAD + at * sizeof(ShadowFrame);
  return frames;
}

Carrier* Tracking::CarrierOf(ThreadId thread) const {
  const auto found =
      std::ranges::find_if(threads_, [&](Carrier* each) { return NumberOf(*each) == thread; });
  return found != threads_.end() ? *found : nullptr;
}

// The thread may be running: what is read may be torn, and is not taken for a call then.
std::vector<CallFrame> Tracking::CallsOf(ThreadId thread) const {
  constexpr unsigned kMostCalls = 256;
  std::vector<CallFrame> calls;
  Carrier* const carrier = CarrierOf(thread);
  if (!code_cache_ || carrier == nullptr) return calls;
  const CacheThread& memory = GuestCodeCache::ThreadOf(*carrier);
  std::uint64_t next = (memory.next_frame - TRAPLINE_CACHE_THREAD) / sizeof(ShadowFrame);
  for (unsigned i = 0; i < kMostCalls; ++i) {
    const ShadowFrame frame = memory.frames[--next % CacheThread::kShadowFrames];
    if (frame.return_address == 0) break;
    constexpr std::uint64_t kWasTold = std::uint64_t{1} << 63;
    const CallFrame call{frame.return_address & ~kWasTold, ~frame.inverse_slot};
    const bool is_above = calls.empty() || call.slot > calls.back().slot;
    std::uint64_t on_stack = 0;
    if (is_above && ReadGuest(call.slot, on_stack) && on_stack == call.return_address)
      calls.push_back(call);
  }
  return calls;
}

void Tracking::HandleEventLocked(ThreadId thread, ThreadState& state,
                                 const agent::QueuedEvent& event) {
  const auto kind = static_cast<std::uint32_t>(event.kind);
  if (event.kind == TRAPLINE_QUEUED_ACCESS) {
    HandleAccessLocked(thread, state, event);
  } else if (event.kind == TRAPLINE_QUEUED_FRAME) {
    if (state.frames.empty()) state.frames.resize(CacheThread::kShadowFrames);
    state.frames[event.size % CacheThread::kShadowFrames] =
        observer_.InternFrame(state.FrameOf(event.ip), event.address);
  } else if (kind == TRAPLINE_QUEUED_REPEAT) {
    TellRepeatLocked({static_cast<ThreadId>(event.kind >> 32 & (kMaxThreads - 1)),
                      (event.kind & TRAPLINE_QUEUED_REPEAT_WRITE) != 0,
                      (event.kind & TRAPLINE_QUEUED_REPEAT_LOCKED) != 0, event.address,
                      event.kind >> TRAPLINE_QUEUED_REPEAT_SIZE & 0x1f, event.size, event.ip});
  } else if (kind == TRAPLINE_QUEUED_LONG_READ || kind == TRAPLINE_QUEUED_LONG_WRITE) {
    HandleLongAccessLocked(thread, state, event);
  } else if (kind == TRAPLINE_READ || kind == TRAPLINE_WRITE) {
    HandleRuntimeAccessLocked(thread, state, event);
  } else if (event.kind == TRAPLINE_QUEUED_LATE_RELEASE) {
    if (event.ip == 0) return;  // the thread is gone, and all that it had noted was told
    TellLateReleaseLocked(
        {static_cast<ThreadId>(event.ip - 1), event.address,
         agent::WholeMoment(event.sequence, static_cast<std::uint32_t>(event.size))});
  } else if (kind == TRAPLINE_QUEUED_WAKE) {
    TakeInWatchedLocked(thread, state, true, event.sequence + 1);
    WakeLocked(thread, event.address);
  } else {
    HandleRuntimeEventLocked(thread, state, event);
  }
}

void Tracking::HandleRuntimeEventLocked(ThreadId thread, ThreadState& state,
                                        agent::QueuedEvent event) {
  if (NamesObject(event.kind)) event.address = space_.Canonical(event.address);
  TakeInWatchedLocked(thread, state, !code_cache_ || EndsEpoch(event.kind), event.sequence + 1);
  ++statistics_.runtime_events;
  if (event.kind == TRAPLINE_JOIN_BEGIN) {
    OnJoinBeginLocked(thread, state, event.address);
    return;
  }
  const auto lock_event = LockEventKind(event.kind);
  const bool of_block = event.kind == TRAPLINE_ALLOCATE || event.kind == TRAPLINE_FREE;
  // Those do nothing to what is read atomically.
  if (!lock_event && !of_block) releases_.AddAnywhere();
  if (event.kind == TRAPLINE_JOIN) unjoined_.erase(event.address);
  if (of_block) {
    word_uses_.Forget(event.address, event.address + event.size);
    OnBlockLocked(thread, event);
  }
  if (event.kind >= TRAPLINE_COPY_HISTORY ||
      (event.kind >= TRAPLINE_IGNORE_BEGIN && event.kind <= TRAPLINE_IGNORE_SYNC_END) ||
      event.kind == TRAPLINE_UNTRACK) {
    EndLeavingOutLocked();
  }
  if (event.kind == TRAPLINE_FREE && active() && event.size != 0)
    word_uses_.NoteFree(event.address, event.address + event.size);
  if (event.kind == TRAPLINE_HAPPENS_BEFORE && active() && event.address < kFirstMereKey)
    runtime_keys_.insert(event.address);
  if (event.kind >= TRAPLINE_FIBER_CREATE && event.kind <= TRAPLINE_FIBER_NAME) {
    user_level_threads_.OnFiberEvent(thread, state.carried, event,
                                     space_.policy() != SharingPolicy::kExact);
    UpdateAloneLocked();
    return;
  }
  if (event.kind == TRAPLINE_TASK_SWITCH) {
    if (!active()) return;
    user_level_threads_.OnTaskSwitch(thread, state.carried, event, state.stack_start,
                                     state.stack_end);
    UpdateAloneLocked();
    return;
  }
  if (event.kind == TRAPLINE_TASK_OF_THREAD) {
    user_level_threads_.OnTaskUsesThread(thread, state.carried);
    return;
  }
  if (event.kind == TRAPLINE_CLEAR_HISTORY && event.address >= kFirstMereKey) {
    if (active()) Observer().OnHistoryEnds(thread, event.address, event.address + event.size);
    return;
  }
  if (event.kind == TRAPLINE_CLEAR_HISTORY) {
    OnBlockLocked(thread, event);
    space_.ForEachCanonical(event.address, event.size, [&](const Range& part) {
      word_uses_.Forget(part.start, part.end);
      Observer().OnHistoryEnds(thread, part.start, part.end);
    });
    EndAllEpochsLocked();
    return;
  }
  if (event.kind == TRAPLINE_BENIGN_RACE || event.kind == TRAPLINE_UNTRACK ||
      event.kind == TRAPLINE_TRACK) {
    space_.ForEachCanonical(event.address, event.size, [&](const Range& part) {
      agent::QueuedEvent known = event;
      known.address = part.start;
      known.size = part.end - part.start;
      Observer().OnRuntimeEvent(thread, known);
    });
    if (event.kind == TRAPLINE_TRACK) EndAllEpochsLocked();
    return;
  }
  if (lock_event) {
    QueueLockEventLocked(thread, *lock_event, event);
  } else {
    Observer().OnRuntimeEvent(thread, event);
  }
}

// What others learn from now on may be forgotten before the thread has heard of it. So all that it
// has done is told first, as where it ends.
void Tracking::OnJoinBeginLocked(ThreadId thread, ThreadState& state,
                                 std::uint64_t thread_pointer) {
  if (!active() || thread_pointer == 0) return;
  const auto other = std::ranges::find_if(
      states_, [&](const auto& known) { return known.second.thread_pointer == thread_pointer; });
  if (other == states_.end()) return;  // it has ended
  // That takes some milliseconds where the thread has much: a sixteenth of the time at most, but
  // for the first 20 ms.
  constexpr std::uint64_t kAlwaysSpent = 20'000'000;
  const std::uint64_t now = Nanoseconds(CLOCK_MONOTONIC);
  if (state.first_join_begin == 0) state.first_join_begin = now;
  if (state.join_begins_took > kAlwaysSpent + (now - state.first_join_begin) / 16) return;
  if (state.repeat_slot) repeats_.TellThose(*state.repeat_slot, handled_);
  state.join_begins_took += Nanoseconds(CLOCK_MONOTONIC) - now;
  Observer().OnJoinBegin(thread, other->first);
}

// --- what a language runtime says of its threads and its memory

ThreadId Tracking::IdentityLocked(ThreadId thread) const {
  const auto known = states_.find(thread);
  return known != states_.end() ? known->second.carried.Identity(thread) : thread;
}

void Tracking::EndAllEpochsLocked() {
  for (Carrier* const carrier : threads_) EndEpoch(*carrier);
}

bool Tracking::HandleRequest(Carrier& carrier, std::uint64_t kind, std::uint64_t address,
                             std::uint64_t size, std::uint64_t ip) {
  if (kind != TRAPLINE_COPY_HISTORY && kind != TRAPLINE_COPY_HISTORIES &&
      kind != TRAPLINE_AFTER_ALL) {
    return false;
  }
  std::vector<trapline_history_copy> copies;
  if (kind == TRAPLINE_COPY_HISTORY) copies.push_back({ip, address, size});
  if (kind == TRAPLINE_COPY_HISTORIES) {
    constexpr std::uint64_t kMost = 1 << 20;
    copies.resize(std::min(size, kMost));
    if (!ReadGuest(address, copies.data(), copies.size() * sizeof(trapline_history_copy)))
      return true;
  }
  const std::lock_guard lock(mutex_);
  const ThreadId thread = NumberOf(carrier);
  CatchUpLocked(carrier, true);
  EndLeavingOutLocked();
  ++statistics_.runtime_events;
  releases_.AddAnywhere();
  locks_.TellAll();
  if (kind == TRAPLINE_AFTER_ALL) Observer().OnAfterAll(thread);
  for (const trapline_history_copy& copy : copies)
    CopyHistoryLocked(thread, copy.from, copy.to, copy.size);
  EndAllEpochsLocked();
  return true;
}

void Tracking::CopyHistoryLocked(ThreadId thread, std::uint64_t from, std::uint64_t to,
                                 std::uint64_t size) {
  // Parts of which each is in one piece at both ends, in the order that an overlap asks for.
  struct Part {
    std::uint64_t from, to, size;
  };
  std::vector<Part> copies;
  std::uint64_t done = 0;
  space_.ForEachCanonical(to, size, [&](const Range& target) {
    std::uint64_t at = target.start;
    space_.ForEachCanonical(from + done, target.end - target.start, [&](const Range& source) {
      copies.push_back({source.start, at, source.end - source.start});
      at += source.end - source.start;
    });
    done += target.end - target.start;
  });
  if (to > from) std::reverse(copies.begin(), copies.end());
  for (const Part& copy : copies) {
    word_uses_.Copy(copy.from, copy.to, copy.size);
    Observer().OnCopied(thread, copy.from, copy.to, copy.size);
  }
}

// Memory moves, for good, to where none was.
void Tracking::MoveLocked(const ViewMove& move) {
  if (Carrier* const mover = CarrierOf(CurrentThread())) TellHeldLocked(*mover);
  locks_.TellAll();
  repeats_.TellAll(handled_);
  repeats_.Forget(move.from, move.from + move.length);
  repeats_.Forget(move.to, move.to + move.length);
  sector_uses_.Move(move.from, move.to, move.length);
  word_uses_.Copy(move.from, move.to, move.length);
  word_uses_.Forget(move.from, move.from + move.length);
  word_uses_.OnMappingsChanged();
  former_owners_.Move(move.from, move.to, move.length);
  releases_.AddAnywhere();
  Observer().OnMoved(CurrentThread(), move.from, move.to, move.length);
}

void Tracking::OnRuntimeEvent(Carrier& carrier, std::uint64_t kind, std::uint64_t address,
                              std::uint64_t size, std::uint64_t ip) {
  const std::lock_guard lock(mutex_);
  DrainLocked();
  EndEpoch(carrier);
  const ThreadId thread = NumberOf(carrier);
  TellHeldLocked(carrier);
  if (LockEventKind(kind) || kind == TRAPLINE_SYNC_DESTROYED || kind == TRAPLINE_SYNC_CREATED) {
    locks_.Touch(address, [&] {
      carrier.take_number();
      DrainLocked();
    });
  }
  HandleRuntimeEventLocked(thread, states_[thread], {kNotQueued, kind, address, size, ip});
  // The agent did not see it.
  if (kind >= TRAPLINE_ALLOCATE && kind <= TRAPLINE_CLEAR_HISTORY)
    repeats_.Forget(address, address + size);
  if (EndsEpoch(kind)) NewMomentLocked(carrier);
}

std::optional<ThreadId> Tracking::ThreadByPointer(std::uint64_t thread_pointer) {
  const std::lock_guard lock(mutex_);
  const auto found = thread_pointers_.find(thread_pointer);
  if (found == thread_pointers_.end()) return std::nullopt;
  return found->second;
}

void Tracking::HelpingMutex::lock() {
  // One drain only: then it stands in line.
  if (const std::uint64_t drain = tracking_.drains_; drain % 2 != 0)
    tracking_.observer_.HelpUntil([&] { return tracking_.drains_ != drain; });
  if (mutex_.try_lock()) return;
  ++waiting_;
  mutex_.lock();
  --waiting_;
}

void Tracking::Drain() {
  const std::lock_guard lock(mutex_);
  DrainLocked();
}

// Threads that came to wait until all queues have been drained would take turns. So this one helps,
// and as soon as it has some room again goes on beside the one that drains.
void Tracking::MakeRoom(Carrier& carrier) {
  constexpr std::uint64_t kRoom = TRAPLINE_QUEUE_ENTRIES / 16;
  const agent::ThreadPage& page = carrier.thread_page();
  const auto has_room = [&] {
    const std::uint64_t tail = __atomic_load_n(&page.queue_tail, __ATOMIC_ACQUIRE);
    return page.queue_head - tail <= TRAPLINE_QUEUE_ENTRIES - kRoom;
  };
  idle_drain_->OnFull();
  while (IsDraining()) {
    observer_.HelpUntil([&] { return !IsDraining() || has_room(); });
    if (has_room()) return;
  }
  Drain();
}

// On a processor that would be idle.
bool Tracking::DrainWhileIdle() {
  constexpr std::uint64_t kWorth = 1024;  // events, 1 ms of work: a drain costs some 20 us more
  if (mutex_.contended()) return false;
  {
    const std::lock_guard lock(mutex_);
    if (!active()) return false;
    std::uint64_t queued = 0;
    for (Carrier* const carrier : threads_) {
      const agent::ThreadPage& page = carrier->thread_page();
      queued += __atomic_load_n(&page.queue_head, __ATOMIC_ACQUIRE) - page.queue_tail;
    }
    if (queued < kWorth) return false;
    DrainLocked();
    ++statistics_.idle_drains;
  }
  DropNewlyAtomicCode();
  return true;
}

void Tracking::GrowRepeatTable(Carrier& carrier) {
  const std::uint64_t user = carrier.thread_page().repeat_user;
  if (user < 1 || user > agent::kRepeatThreads) return;
  const auto slot = static_cast<unsigned>(user - 1);
  if (!repeats_.IsFull(slot)) return;
  const std::lock_guard lock(mutex_);
  carrier.take_number();
  DrainLocked();
  repeats_.Grow(slot, handled_);
}

void Tracking::DrainAll() {
  const std::lock_guard lock(mutex_);
  if (!threads_.empty()) threads_.front()->take_number();
  DrainLocked();
  repeats_.TellAll(handled_);
  batch_.Tell();
}

void Tracking::OnEdge(Carrier& carrier, EventKind kind, std::uint64_t key) {
  if (!active()) return;
  EndEpoch(carrier);
  const std::lock_guard lock(mutex_);
  const ThreadId thread = NumberOf(carrier);
  CatchUpLocked(carrier, true);
  releases_.Add(key, 1);
  batch_.AddEdge(thread, kind, key);
  NewMomentLocked(carrier);
}

void Tracking::OnKernelLock(Carrier& carrier, std::uint64_t address) {
  if (!active()) return;
  EndEpoch(carrier);
  const std::uint64_t word = space_.Canonical(address);
  constexpr std::uint64_t kFutex = 4;
  const std::lock_guard lock(mutex_);
  const ThreadId thread = NumberOf(carrier);
  CatchUpLocked(carrier, true);
  releases_.Add(word, kFutex);
  AcquireFormerLocked(thread, word, word + kFutex);
  TouchLocked(carrier, word, kFutex, agent::Touch::kAtomicWrite);
  batch_.AddOrder(thread, EventKind::kAtomicRmw, MemoryOrder::kAcqRel, word, kFutex);
  NewMomentLocked(carrier);
}

// As the agent does where nobody waits. To drain first would keep those that do waiting.
void Tracking::OnWake(Carrier& carrier, std::uint64_t address) {
  agent::ThreadPage& page = carrier.thread_page();
  const std::uint64_t head = page.queue_head;
  if (head - __atomic_load_n(&page.queue_tail, __ATOMIC_ACQUIRE) == TRAPLINE_QUEUE_ENTRIES)
    MakeRoom(carrier);
  EndEpoch(carrier);
  auto* const entries =
      static_cast<agent::QueuedEvent*>(carrier.ThreadRegion(TRAPLINE_EVENT_QUEUE));
  entries[head % TRAPLINE_QUEUE_ENTRIES] = {carrier.take_number(), TRAPLINE_QUEUED_WAKE, address, 0,
                                            0};
  __atomic_store_n(&page.queue_head, head + 1, __ATOMIC_RELEASE);
}

void Tracking::WakeLocked(ThreadId thread, std::uint64_t word) {
  const std::uint64_t address = space_.Canonical(word);
  releases_.Add(address, 1);
  if (runtime_keys_.contains(address)) batch_.AddEdge(thread, EventKind::kHappensBefore, address);
}

void Tracking::ForgetMemoryLocked() {
  word_uses_.Clear();
  former_owners_.Clear();
  runtime_keys_.clear();
}

// --- pages that were private

// What `thread` has done until now comes before something that it does not know of, and what it
// does from now on does not, be it a repetition: it is told.
void Tracking::ReleaseLocked(ThreadId thread, std::uint64_t key) {
  batch_.AddEdge(thread, EventKind::kHappensBefore, key);
  if (Carrier* const carrier = CarrierOf(thread)) EndEpoch(*carrier);
  NewMomentLocked(thread, *threads_.front());
}

void Tracking::OnOwnershipLostLocked(ThreadId owner, const std::vector<PageRun>& runs) {
  const std::uint64_t key = former_owners_.NextKey(owner);
  releases_.AddAnywhere();
  ReleaseLocked(owner, key);
  const auto note = [&](const Range& lost) {
    former_owners_.Add(owner, key, lost.start, lost.end);
    repeats_.TouchReadAtomically(lost.start, lost.end,
                                 [this](const RepeatedAccess& repeat) { TellEndedLocked(repeat); });
  };
  for (const PageRun& run : runs) space_.ForEachCanonical(run.start, run.end - run.start, note);
}

// `thread` may have read, in [start, end), what former owners released there.
void Tracking::AcquireFormerLocked(ThreadId thread, std::uint64_t start, std::uint64_t end) {
  if (former_owners_.empty()) return;
  // Repeats have ended where a thread is not always itself, or its synchronisation not always
  // counts: then each time.
  FormerOwners::Known* const known = repeats_.started() ? &states_[thread].known_losses : nullptr;
  former_owners_.ForEach(start, end, [&](ThreadId owner, std::uint64_t key) {
    if (owner == thread) return;
    if (known != nullptr && !former_owners_.Learn(*known, key)) return;
    batch_.AddEdge(thread, EventKind::kHappensAfter, key);
    if (user_level_threads_.existed())
      batch_.AddEdge(thread, EventKind::kHappensAfter, kCarrierKeys | owner);
  });
}

// The same for pages by whatever address.
void Tracking::AcquireFormerPagesLocked(ThreadId thread, const PageRun& run) {
  space_.ForEachCanonical(run.start, run.end - run.start, [&](const Range& part) {
    AcquireFormerLocked(thread, part.start, part.end);
  });
}

void Tracking::AcquireForAccessLocked(ThreadId thread, const MemoryAccess& access, EventKind kind,
                                      std::uint64_t ip) {
  if (kind == EventKind::kAtomicWrite) return;
  // A plain one may be atomic without anybody having noticed, for the other side was native.
  if (!IsAtomic(kind)) {
    if (access.size > kWord || !observer_.MayBeAtomicCode(ip, access.address)) return;
    if (kind == EventKind::kWrite) {
      word_uses_.NoteMayRelease(access.address, thread);
      return;
    }
    states_[thread].loads.NoteMayPoll();
  }
  AcquireFormerLocked(thread, access.address, access.address + access.size);
}

// What `thread` reads natively, atomically it may be, on these pages nobody will see: it takes in
// now what was released there.
void Tracking::AcquireOpenedLocked(ThreadId thread, std::uint64_t start, std::uint64_t end) {
  AcquireFormerLocked(thread, start, end);
  for (std::uint64_t page = start; page < end; page += kPageSize) {
    const WordUses::PageWords* const words = word_uses_.Find(page);
    if (words == nullptr) continue;
    for (const ThreadId writer : words->may_release) {
      if (writer == thread) continue;
      ReleaseLocked(writer, kOpenedKeys | writer);
      batch_.AddEdge(thread, EventKind::kHappensAfter, kOpenedKeys | writer);
    }
    words->atomic.ForEach(0, kPageSize, [&](std::uint64_t at) {
      batch_.AddOrder(thread, EventKind::kAtomicRead, MemoryOrder::kAcquire, page + at, kWord);
    });
  }
}

void Tracking::NoteAtomicLocked(ThreadId thread, std::uint64_t address, std::uint64_t size) {
  for (std::uint64_t word = address; word < address + size; word += kWord) {
    if (!word_uses_.NoteAtomic(word)) continue;
    const std::uint64_t bytes = std::min(kWord, address + size - word);
    if (!word_uses_.WasPlainlyWritten(word)) {
      // Whoever read it so far waited for this: those were atomic loads.
      Observer().OnHistoryEnds(thread, word, word + bytes);
    }
    WatchIfReadLocked(thread, {word, bytes});
    // The agent does not always know, and nobody leaves anything out there once this is done.
    sector_uses_.Touch(agent::kUsedByOthers, word, bytes, agent::SectorTouch::kAtomic);
    WatchSettledLocked(thread, word);
  }
}

// Who found the sector settled just before it was touched for this may read just after the release
// what it finds there. Once for each subsector: from then on nobody finds it settled, whatever
// objects come and go there, and to watch each of them would order those who use them side by side.
void Tracking::WatchSettledLocked(ThreadId thread, std::uint64_t address) {
  if (!sector_uses_.NoteAtomic(address)) return;
  const std::uint32_t user = sector_uses_.ReadsLeftOutBy(address);
  if (user == agent::kSectorOfNobody) return;
  const UnseenLoads::Word subsector{AlignDown(address, agent::kSubsectorSize),
                                    agent::kSubsectorSize};
  for (auto& [other, state] : states_) {
    if (other != thread && state.repeat_slot &&
        (user == agent::kSectorOfReaders || *state.repeat_slot + 1 == user)) {
      state.loads.Watch(subsector);
    }
  }
}

// Who has read the word may read it again without being heard of: all but `thread` watch it.
void Tracking::WatchIfReadLocked(ThreadId thread, const UnseenLoads::Word& word) {
  for (auto& [other, state] : states_) {
    if (other != thread && state.loads.MayReadAgain(word.address)) state.loads.Watch(word);
  }
}

// Whether an access is atomic, and so synchronisation: detection.md, "What orders threads".
EventKind Tracking::ClassifyLocked(ThreadId thread, const MemoryAccess& access,
                                   bool atomic_by_debug_info, bool exchanges) {
  const EventKind locked = access.write ? EventKind::kAtomicRmw : EventKind::kAtomicRead;
  const EventKind plain = PlainKind(access);
  const std::uint64_t word = access.address;
  if (access.atomic || atomic_by_debug_info) {
    NoteAtomicLocked(thread, word, access.size);
    if (exchanges && access.size <= kWord) word_uses_.NoteExchange(word, IdentityLocked(thread));
    return access.atomic ? locked : access.write ? EventKind::kAtomicWrite : EventKind::kAtomicRead;
  }
  if (access.size > kWord) return plain;
  if (!access.write) {
    if (word_uses_.IsClearedByKernel(word))
      batch_.AddEdge(thread, EventKind::kHappensAfter, access.address);
    return word_uses_.IsReadAtomically(word, access.size) ? EventKind::kAtomicRead : plain;
  }
  if (WordUses::Page& page = word_uses_.PageOf(word); !WordUses::IsAtomic(page, word)) {
    word_uses_.NotePlainWrite(page, word);
    return plain;
  }
  WordUses::AtomicWord& use = word_uses_.AtomicUse(word);
  // Who took a lock by an exchange gives it back by a plain store.
  if (!use.broken && (word_uses_.IsLocker(word, use, IdentityLocked(thread)) ||
                      former_owners_.Has(word, thread))) {
    return EventKind::kAtomicWrite;
  }
  use.broken = true;
  return plain;
}

void Tracking::EmitLocked(Carrier& carrier, const MemoryAccess& access,
                          const RegisterFile& registers, EventKind kind) {
  EmitLocked(carrier, {access.address, access.address + access.size}, registers, kind, false,
             registers.rip);
}

void Tracking::EmitLocked(Carrier& carrier, const Range& bytes, const RegisterFile& registers,
                          EventKind kind, bool in_runtime, std::uint64_t ip) {
  ++statistics_.checks;
  const std::uint64_t size = bytes.end - bytes.start;
  NoteRelease(kind, bytes.start, size);
  TouchLocked(carrier, bytes.start, size, TouchOf(kind));
  Observer().OnAccess(NumberOf(carrier), kind, bytes.start, size, registers, in_runtime, ip);
  if (IsAtomic(kind) && IsWrite(kind)) NewMomentLocked(carrier);
}

bool Tracking::Check(Carrier& carrier, const Instruction& instruction,
                     const RegisterFile& registers, bool& holds_atomic_lock) {
  holds_atomic_lock = false;
  const MemoryAccessList accesses = Accesses(instruction, registers);
  const bool only_reads =
      OnlyReadsMemory(instruction) ||
      (accesses.size() == 1 && StoresVirtualTablesAgain(instruction, registers, accesses[0]));
  struct Part {
    MemoryAccess access;
    bool whole;
  };
  std::vector<Part> parts;
  bool atomic = false;
  for (const MemoryAccess& access : accesses) {
    for (const Range& range :
         space_.CheckedParts(carrier, access.address, access.size, access.write)) {
      MemoryAccess part = access;
      part.address = space_.Canonical(range.start);
      part.size = range.end - range.start;
      if (only_reads) {
        part.read = true;
        part.write = false;
      }
      parts.push_back({part, part.size == access.size});
      atomic = atomic || access.atomic;
    }
  }
  if (parts.empty()) {
    if (!accesses.complete() || !instruction.effects_known) {
      const std::lock_guard lock(mutex_);
      ++statistics_.unchecked;
    }
    return false;
  }
  if (IsConditionalMove(instruction) && !ConditionHolds(instruction.opcode, registers.rflags))
    return true;
  const MemoryAccess& first = parts.front().access;
  const bool by_debug_info =
      !atomic && (IsAtomicCode(registers.rip) ||
                  (first.size <= kWord && observer_.IsAtomicVariable(first.address, first.size)));
  const bool exchanges = IsExchange(instruction);
  // Words that are only ever written atomically are read atomically; whether that is so here is
  // known once the lock is held.
  atomic_mutex_.lock();
  bool synchronises = atomic || by_debug_info;
  {
    const std::lock_guard lock(mutex_);
    const ThreadId thread = NumberOf(carrier);
    CatchUpLocked(carrier);
    if (!accesses.complete() || !instruction.effects_known) ++statistics_.unchecked;
    for (const Part& part : parts) {
      NoteStorageLocked(thread, states_[thread], part.access.address);
      EventKind kind =
          ClassifyLocked(thread, part.access, by_debug_info, part.access.atomic && exchanges);
      if (IsAtomic(kind) && !part.access.atomic &&
          observer_.IsPlain(registers.rip, part.access.address)) {
        kind = PlainKind(part.access);
      }
      synchronises = synchronises || IsAtomic(kind);
      AcquireForAccessLocked(thread, part.access, kind, registers.rip);
      EmitLocked(carrier, part.access, registers, kind);
      // What is atomic is carried out under the lock: it sees what was reported.
      if (kind == EventKind::kRead) states_[thread].loads.Note(part.access, kind);
    }
  }
  if (synchronises) {
    holds_atomic_lock = true;
  } else {
    atomic_mutex_.unlock();
  }
  return true;
}

void Tracking::CheckUnknown(Carrier& carrier, std::uint64_t address, bool write,
                            const RegisterFile& registers) {
  const std::lock_guard lock(mutex_);
  CatchUpLocked(carrier);
  ++statistics_.unchecked;
  EmitLocked(carrier, {space_.Canonical(address), 1, !write, write, false}, registers,
             write ? EventKind::kWrite : EventKind::kRead);
}

void Tracking::CheckRuntime(Carrier& carrier, std::uint64_t kind, std::uint64_t address,
                            std::uint64_t size, std::uint64_t ip, const RegisterFile& registers) {
  if (!active() || HandleRequest(carrier, kind, address, size, ip) || size == 0) return;
  const auto parts = space_.CheckedParts(carrier, address, size,
                                         kind != TRAPLINE_READ && kind != TRAPLINE_ATOMIC_READ);
  if (parts.empty()) return;
  EventKind event = EventKind::kRead;
  switch (kind) {
    case TRAPLINE_READ:
      break;
    case TRAPLINE_WRITE:
      event = EventKind::kWrite;
      break;
    case TRAPLINE_ATOMIC_READ:
      event = EventKind::kAtomicRead;
      break;
    case TRAPLINE_ATOMIC_WRITE:
      event = EventKind::kAtomicWrite;
      break;
    case TRAPLINE_ATOMIC_UPDATE:
      event = EventKind::kAtomicRmw;
      break;
    default:
      return;
  }
  const std::lock_guard lock(mutex_);
  CatchUpLocked(carrier);
  for (const Range& range : parts) {
    space_.ForEachCanonical(range.start, range.end - range.start, [&](const Range& part) {
      const std::uint64_t length = part.end - part.start;
      if (IsAtomic(event) && length <= 2 * kWord)
        NoteAtomicLocked(NumberOf(carrier), part.start, length);
      EmitLocked(carrier, part, registers, event, true, ip);
    });
  }
}

void Tracking::CheckSystemCall(Carrier& carrier, bool write, std::uint64_t address,
                               std::uint64_t size, const RegisterFile& registers) {
  if (!active() || size == 0) return;
  const auto parts = space_.CheckedParts(carrier, address, size, write);
  if (parts.empty()) return;
  // As much work as so many accesses of a word.
  if (code_cache_)
    GuestCodeCache::ThreadOf(carrier).leave_after -= static_cast<std::int64_t>(size / kWord);
  const std::lock_guard lock(mutex_);
  CatchUpLocked(carrier);
  for (const Range& range : parts) {
    space_.ForEachCanonical(range.start, range.end - range.start, [&](const Range& part) {
      EmitLocked(carrier, part, registers, write ? EventKind::kWrite : EventKind::kRead, true, 0);
    });
  }
}

ExecutionObserver::Handover Tracking::OnExecute() {
  const std::vector<Range> shared = space_.SharedRegions();
  const std::lock_guard lock(mutex_);
  DrainLocked();
  for (const Range& memory : shared) Observer().OnSharedMemoryEnds(memory.start, memory.end);
  return Observer().OnExecute();
}

void Tracking::OnExecuteFailed() {
  const std::lock_guard lock(mutex_);
  Observer().OnExecuteFailed();
}

void Tracking::CheckDescriptor(Carrier& carrier, bool write, int descriptor,
                               const RegisterFile& registers) {
  const std::lock_guard lock(mutex_);
  CatchUpLocked(carrier);
  Observer().OnAccess(NumberOf(carrier), write ? EventKind::kWrite : EventKind::kRead,
                      DescriptorAddress(descriptor), 1, registers, true, 0);
}

void Tracking::OnNewDescriptor(Carrier& carrier, int descriptor) {
  const std::lock_guard lock(mutex_);
  DrainLocked();
  const std::uint64_t address = DescriptorAddress(descriptor);
  Observer().OnHistoryEnds(NumberOf(carrier), address, address + 1);
}

int Tracking::OnExit(int status) {
  const std::vector<Range> shared = space_.SharedRegions();
  const std::lock_guard lock(mutex_);
  DrainLocked();
  for (const Range& memory : shared) Observer().OnSharedMemoryEnds(memory.start, memory.end);
  return Observer().OnExit(status);
}

TrackingStatistics Tracking::statistics() {
  const std::lock_guard lock(mutex_);
  TrackingStatistics result = statistics_;
  result.traps = traps_;
  result.chained = chained_;
  result.view_changes = view_changes_;
  result.repeats = repeats_.count();
  result.settled = sector_uses_.settled();
  return result;
}

}  // namespace trapline
