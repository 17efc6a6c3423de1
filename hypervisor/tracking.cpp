#include "hypervisor/tracking.h"

#include <algorithm>
#include <cstring>

#include "hypervisor/guest_copy.h"
#include "hypervisor/guest_thread.h"

namespace trapline {
namespace {

constexpr std::uint64_t kWord = 8;

EventKind PlainKind(const MemoryAccess& access) {
  // A write is checked against everything a read is checked against, so an instruction that does
  // both counts as a write.
  return access.write ? EventKind::kWrite : EventKind::kRead;
}

// The instructions by which locks are taken, as opposed to those that count.
bool IsExchange(const Instruction& instruction) {
  if (instruction.encoding != Encoding::kLegacy) return false;
  const std::uint8_t opcode = instruction.opcode;
  if (instruction.map == kMapOneByte) return opcode == 0x86 || opcode == 0x87;  // xchg
  return instruction.map == kMap0F &&
         (opcode == 0xb0 || opcode == 0xb1 || opcode == 0xc7 ||  // cmpxchg
          opcode == 0xab || opcode == 0xba);                     // bts
}

ThreadId CurrentThread() {
  const GuestThread* const thread = GuestThread::Current();
  return thread != nullptr ? static_cast<ThreadId>(thread->logical_number()) : 0;
}

}  // namespace

Tracking::Tracking(AddressSpace& space, SharingPolicy policy, ExecutionObserver& observer,
                   std::function<bool(const std::string& path)> is_untracked_module)
    : space_(space), observer_(observer) {
  TrackingRules rules;
  rules.policy = policy;
  rules.is_untracked_module = std::move(is_untracked_module);
  rules.on_fresh_memory = [this](std::uint64_t start, std::uint64_t end) {
    if (!active()) return;
    const std::lock_guard lock(mutex_);
    DrainLocked();
    ForgetWordsLocked(start, end);
    observer_.OnFreshMemory(CurrentThread(), start, end);
  };
  rules.on_moved = [this](std::uint64_t from, std::uint64_t to, std::uint64_t length) {
    if (!active()) return;
    const std::lock_guard lock(mutex_);
    DrainLocked();
    observer_.OnMoved(CurrentThread(), from, to, length);
  };
  space_.SetTrackingRules(std::move(rules));
}

void Tracking::SetStaticRuntime(std::unique_ptr<const StaticRuntime> runtime) {
  if (!runtime) return;
  static_runtime_ = std::move(runtime);
  for (const StaticRuntime::Range& pages : static_runtime_->unwatched_pages())
    space_.SetUntrackedCode(pages.begin, pages.end);
  observer_.SetRuntimeCode(
      [this](std::uint64_t address) { return static_runtime_->IsRuntime(address); });
}

// --- threads

void Tracking::Register(Carrier& carrier) {
  agent::ThreadPage& page = carrier.thread_page();
  page.queue_head = page.queue_tail = 0;
  page.events = 1;
  page.tracking = active() ? 1 : 0;
  threads_.push_back(&carrier);
  UpdateAloneLocked();
}

void Tracking::OnStart(Carrier& carrier, pid_t tid) {
  const std::lock_guard lock(mutex_);
  Register(carrier);
  observer_.OnStart(tid);
}

bool Tracking::OnClone(Carrier& parent, const RegisterFile& parent_registers, ThreadId child,
                       std::uint64_t stack_start, std::uint64_t stack_end,
                       std::uint64_t thread_pointer) {
  space_.Seal(parent);
  const std::lock_guard lock(mutex_);
  DrainLocked();
  const bool starts = !active_.exchange(true);
  ++starting_;
  alone_ = false;
  parent.thread_page().tracking = 1;
  if (static_runtime_) {
    thread_pointers_[parent_registers.fs_base] = NumberOf(parent);
    if (thread_pointer != 0) thread_pointers_[thread_pointer] = child;
  }
  observer_.OnThreadStart(NumberOf(parent), child, parent_registers, stack_start, stack_end,
                          thread_pointer);
  return starts;
}

void Tracking::OnThreadRuns(Carrier& carrier, pid_t tid) {
  const std::lock_guard lock(mutex_);
  --starting_;
  Register(carrier);
  observer_.OnThreadRuns(NumberOf(carrier), tid);
}

void Tracking::OnThreadEnd(Carrier& carrier, std::uint64_t clear_child_tid) {
  space_.Seal(carrier);
  const std::lock_guard lock(mutex_);
  DrainLocked();
  const ThreadId thread = NumberOf(carrier);
  if (clear_child_tid != 0) {
    // Who waits for the end without our runtime's help looks at this word.
    observer_.OnEdge(thread, EventKind::kHappensBefore, clear_child_tid);
    thread_words_.insert(clear_child_tid);
  }
  observer_.OnThreadEnd(thread);
  unjoined_.insert(thread);
  std::erase(threads_, &carrier);
  carrier.thread_page().events = carrier.thread_page().tracking = 0;
  UpdateAloneLocked();
}

bool Tracking::TryQuiet(Carrier& carrier) {
  if (!alone_.load(std::memory_order_relaxed)) return false;
  {
    const std::lock_guard lock(mutex_);
    DrainLocked();
    if (threads_.size() != 1 || starting_ != 0 || !unjoined_.empty() || !active()) return false;
    active_ = false;
    alone_ = false;
    carrier.thread_page().tracking = 0;
    words_.clear();
    thread_words_.clear();
    ++statistics_.quiet_moments;
    observer_.OnQuiet(NumberOf(carrier));
  }
  space_.ForgetStates();
  return true;
}

void Tracking::OnCloneFailed(ThreadId child) {
  const std::lock_guard lock(mutex_);
  --starting_;
  observer_.OnThreadEnd(child);
  UpdateAloneLocked();
}

void Tracking::LockForFork() {
  mutex_.lock();
  code_mutex_.lock();
  DrainLocked();
}

void Tracking::UnlockAfterFork() {
  code_mutex_.unlock();
  mutex_.unlock();
  atomic_mutex_.unlock();
}

void Tracking::OnForkedChild(Carrier& survivor, pid_t tid) {
  space_.ForgetStates();
  const std::lock_guard lock(mutex_);
  threads_.clear();
  starting_ = 0;
  unjoined_.clear();
  words_.clear();
  thread_words_.clear();
  thread_pointers_.clear();
  active_ = false;
  Register(survivor);
  statistics_ = {};
  traps_ = chained_ = view_changes_ = 0;
  observer_.OnFork(NumberOf(survivor), tid);
}

// --- events

void Tracking::DrainLocked() {
  drained_.clear();
  for (Carrier* const carrier : threads_) {
    agent::ThreadPage& page = carrier->thread_page();
    const std::uint64_t head = __atomic_load_n(&page.queue_head, __ATOMIC_ACQUIRE);
    std::uint64_t tail = page.queue_tail;
    if (head == tail) continue;
    const auto* const queue =
        static_cast<const agent::QueuedEvent*>(carrier->ThreadRegion(TRAPLINE_EVENT_QUEUE));
    for (; tail != head; ++tail)
      drained_.emplace_back(NumberOf(*carrier), queue[tail % TRAPLINE_QUEUE_ENTRIES]);
    __atomic_store_n(&page.queue_tail, head, __ATOMIC_RELEASE);
  }
  if (drained_.empty()) return;
  std::sort(drained_.begin(), drained_.end(),
            [](const auto& a, const auto& b) { return a.second.sequence < b.second.sequence; });
  for (const auto& [thread, event] : drained_) HandleEventLocked(thread, event);
}

void Tracking::HandleEventLocked(ThreadId thread, const agent::QueuedEvent& event) {
  ++statistics_.runtime_events;
  if (event.kind == TRAPLINE_JOIN) unjoined_.erase(event.address);
  if (event.kind == TRAPLINE_ALLOCATE || event.kind == TRAPLINE_FREE) {
    ForgetWordsLocked(event.address, event.address + event.size);
  }
  observer_.OnRuntimeEvent(thread, event);
}

void Tracking::OnRuntimeEvent(Carrier& carrier, std::uint64_t kind, std::uint64_t address,
                              std::uint64_t size, std::uint64_t ip) {
  const std::lock_guard lock(mutex_);
  DrainLocked();
  HandleEventLocked(NumberOf(carrier), {0, kind, address, size, ip});
}

std::optional<ThreadId> Tracking::ThreadByPointer(std::uint64_t thread_pointer) {
  const std::lock_guard lock(mutex_);
  const auto found = thread_pointers_.find(thread_pointer);
  if (found == thread_pointers_.end()) return std::nullopt;
  return found->second;
}

void Tracking::Drain() {
  const std::lock_guard lock(mutex_);
  DrainLocked();
}

void Tracking::OnEdge(Carrier& carrier, EventKind kind, std::uint64_t key) {
  if (!active()) return;
  const std::lock_guard lock(mutex_);
  DrainLocked();
  observer_.OnEdge(NumberOf(carrier), kind, key);
}

// --- accesses

std::optional<Instruction> Tracking::DecodeAt(std::uint64_t rip) {
  std::array<unsigned char, kMaximumInstructionLength> bytes{};
  std::size_t length = bytes.size();
  // The instruction may end just before memory that is not there.
  if (!ReadGuest(rip, bytes.data(), length)) {
    length = kPageSize - rip % kPageSize;
    if (length >= bytes.size() || !ReadGuest(rip, bytes.data(), length)) return std::nullopt;
  }
  const std::lock_guard lock(code_mutex_);
  const auto found = code_.find(rip);
  // Code may have been rewritten since.
  if (found != code_.end() && std::memcmp(found->second.bytes.data(), bytes.data(),
                                          found->second.instruction.length) == 0) {
    return found->second.instruction;
  }
  const auto decoded = Decode({bytes.data(), length}, rip);
  if (decoded) code_.insert_or_assign(rip, CachedInstruction{bytes, *decoded});
  return decoded;
}

bool Tracking::NeedsVectors(const Instruction& instruction) {
  const auto operands = instruction.memory();
  return std::any_of(operands.begin(), operands.end(), [](const MemoryOperand& operand) {
    return operand.mask != MaskKind::kNone || operand.pattern == Pattern::kGather;
  });
}

void Tracking::ForgetWordsLocked(std::uint64_t start, std::uint64_t end) {
  if (words_.empty()) return;
  if (end - start > words_.size()) {
    std::erase_if(words_,
                  [&](const auto& word) { return word.first >= start && word.first < end; });
    return;
  }
  for (std::uint64_t word = start; word < end; ++word) words_.erase(word);
}

// Whether an access is atomic, and so synchronisation: architecture.md, "Atomics".
EventKind Tracking::ClassifyLocked(Carrier& carrier, const MemoryAccess& access,
                                   bool atomic_by_debug_info, bool exchanges) {
  const EventKind plain = PlainKind(access);
  const std::uint64_t word = access.address;
  if (access.size > kWord) return access.atomic ? EventKind::kAtomicRmw : plain;
  if (access.atomic || atomic_by_debug_info) {
    WordUse& use = words_[word];
    if (!use.atomic && !use.plainly_written) {
      // Whoever read it so far waited for this: those were atomic loads.
      observer_.OnFreshMemory(NumberOf(carrier), access.address, access.address + access.size);
    }
    use.atomic = true;
    const ThreadId thread = NumberOf(carrier);
    if (exchanges && std::find(use.lockers.begin(), use.lockers.end(), thread) == use.lockers.end())
      use.lockers.push_back(thread);
    return access.atomic  ? EventKind::kAtomicRmw
           : access.write ? EventKind::kAtomicWrite
                          : EventKind::kAtomicRead;
  }
  if (!access.write) {
    if (thread_words_.contains(word)) {
      observer_.OnEdge(NumberOf(carrier), EventKind::kHappensAfter, access.address);
      return EventKind::kAtomicRead;
    }
    const auto known = words_.find(word);
    return known != words_.end() && known->second.atomic && !known->second.broken
               ? EventKind::kAtomicRead
               : plain;
  }
  WordUse& use = words_[word];
  if (!use.atomic) {
    use.plainly_written = true;
    return plain;
  }
  // Who took a lock by an exchange gives it back by a plain store.
  if (!use.broken &&
      std::find(use.lockers.begin(), use.lockers.end(), NumberOf(carrier)) != use.lockers.end()) {
    return EventKind::kAtomicWrite;
  }
  use.broken = true;
  return plain;
}

void Tracking::EmitLocked(Carrier& carrier, const MemoryAccess& access,
                          const RegisterFile& registers, EventKind kind) {
  ++statistics_.checks;
  observer_.OnAccess(NumberOf(carrier), kind, access.address, access.size, registers, false,
                     registers.rip);
}

bool Tracking::Check(Carrier& carrier, const Instruction& instruction,
                     const RegisterFile& registers, bool& holds_atomic_lock) {
  holds_atomic_lock = false;
  const MemoryAccessList accesses = Accesses(instruction, registers);
  struct Part {
    MemoryAccess access;
    bool whole;
  };
  std::vector<Part> parts;
  bool atomic = false;
  for (const MemoryAccess& access : accesses) {
    for (const Range& range : space_.SharedParts(carrier, access.address, access.size)) {
      MemoryAccess part = access;
      part.address = space_.Canonical(range.start);
      part.size = range.end - range.start;
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
  const bool by_debug_info =
      !atomic && observer_.IsAtomic(registers.rip, parts.front().access.address);
  const bool exchanges = IsExchange(instruction);
  // Words that are only ever written atomically are read atomically; whether that is so here is
  // known once the lock is held.
  atomic_mutex_.lock();
  bool synchronises = atomic || by_debug_info;
  {
    const std::lock_guard lock(mutex_);
    DrainLocked();
    if (!accesses.complete() || !instruction.effects_known) ++statistics_.unchecked;
    for (const Part& part : parts) {
      const EventKind kind =
          ClassifyLocked(carrier, part.access, by_debug_info, part.access.atomic && exchanges);
      synchronises = synchronises || IsAtomic(kind);
      EmitLocked(carrier, part.access, registers, kind);
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
  DrainLocked();
  ++statistics_.unchecked;
  EmitLocked(carrier, {address, 1, !write, write, false}, registers,
             write ? EventKind::kWrite : EventKind::kRead);
}

void Tracking::CheckRuntime(Carrier& carrier, std::uint64_t kind, std::uint64_t address,
                            std::uint64_t size, std::uint64_t ip, const RegisterFile& registers) {
  if (!active() || size == 0) return;
  const auto parts = space_.SharedParts(carrier, address, size);
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
  DrainLocked();
  for (const Range& range : parts) {
    ++statistics_.checks;
    observer_.OnAccess(NumberOf(carrier), event, range.start, range.end - range.start, registers,
                       true, ip);
  }
}

void Tracking::CheckSystemCall(Carrier& carrier, bool write, std::uint64_t address,
                               std::uint64_t size, const RegisterFile& registers) {
  if (!active() || size == 0) return;
  const auto parts = space_.SharedParts(carrier, address, size);
  if (parts.empty()) return;
  const std::lock_guard lock(mutex_);
  DrainLocked();
  for (const Range& range : parts) {
    ++statistics_.checks;
    observer_.OnAccess(NumberOf(carrier), write ? EventKind::kWrite : EventKind::kRead, range.start,
                       range.end - range.start, registers, true, 0);
  }
}

void Tracking::CheckDescriptor(Carrier& carrier, bool write, int descriptor,
                               const RegisterFile& registers) {
  const std::lock_guard lock(mutex_);
  DrainLocked();
  observer_.OnAccess(NumberOf(carrier), write ? EventKind::kWrite : EventKind::kRead,
                     DescriptorAddress(descriptor), 1, registers, true, 0);
}

void Tracking::OnNewDescriptor(Carrier& carrier, int descriptor) {
  const std::lock_guard lock(mutex_);
  DrainLocked();
  const std::uint64_t address = DescriptorAddress(descriptor);
  observer_.OnFreshMemory(NumberOf(carrier), address, address + 1);
}

int Tracking::OnExit(int status) {
  const std::lock_guard lock(mutex_);
  DrainLocked();
  return observer_.OnExit(status);
}

TrackingStatistics Tracking::statistics() {
  const std::lock_guard lock(mutex_);
  TrackingStatistics result = statistics_;
  result.traps = traps_;
  result.chained = chained_;
  result.view_changes = view_changes_;
  return result;
}

}  // namespace trapline
