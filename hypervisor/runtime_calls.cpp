#include "hypervisor/runtime_calls.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <limits>

#include "guest-agent/events.h"
#include "hypervisor/guest_copy.h"

namespace trapline {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kLongest = std::uint64_t{1} << 24;  // bytes of a string that are looked at
constexpr std::uint64_t kWordSize = 8;

// The program's memory, byte by byte, as far as it is there.
class Bytes {
 public:
  explicit Bytes(std::uint64_t start) : at_(start) {}

  // Nothing: the memory ends.
  std::optional<unsigned char> Next() {
    if (used_ == filled_) {
      constexpr std::uint64_t kPage = 4096;
      const std::uint64_t size = std::min<std::uint64_t>(buffer_.size(), kPage - at_ % kPage);
      if (!ReadGuest(at_, buffer_.data(), size)) return std::nullopt;
      at_ += size;
      filled_ = size;
      used_ = 0;
    }
    return buffer_[used_++];
  }

 private:
  std::uint64_t at_;
  std::array<unsigned char, 256> buffer_;
  std::uint64_t used_ = 0, filled_ = 0;
};

// Bytes up to the one that is `value`, itself included, or the string's end if `is_text`; at most
// `limit`.
std::uint64_t Through(std::uint64_t start, int value, bool is_text, std::uint64_t limit) {
  Bytes bytes(start);
  const std::uint64_t most = std::min(limit, kLongest);
  for (std::uint64_t length = 0; length < most; ++length) {
    const auto byte = bytes.Next();
    if (!byte) return length;
    if (*byte == static_cast<unsigned char>(value) || (is_text && *byte == 0)) return length + 1;
  }
  return most;
}

std::uint64_t Text(std::uint64_t start, std::uint64_t limit = kNoLimit) {
  return Through(start, 0, true, limit);
}

// Bytes that a comparison looks at.
std::uint64_t Compared(std::uint64_t a, std::uint64_t b, std::uint64_t limit, bool is_text,
                       bool folds) {
  Bytes first(a), second(b);
  const std::uint64_t most = std::min(limit, kLongest);
  for (std::uint64_t length = 0; length < most; ++length) {
    const auto x = first.Next(), y = second.Next();
    if (!x || !y) return length;
    const bool same = folds ? std::tolower(*x) == std::tolower(*y) : *x == *y;
    if (!same || (is_text && *x == 0)) return length + 1;
  }
  return most;
}

// The usable size of a block of glibc's malloc from the word before it: the block's size with its
// header, and whether it is a mapping of its own. 0 for what cannot be a block.
std::uint64_t UsableSize(std::uint64_t block) {
  constexpr std::uint64_t kMapped = 2, kFlags = 7, kAlignment = 16, kSmallest = 32;
  constexpr std::uint64_t kLargestUnmapped = std::uint64_t{1} << 36;
  std::uint64_t word = 0;
  if (block % kAlignment != 0 || !ReadGuest(block - kWordSize, word)) return 0;
  const std::uint64_t size = word & ~kFlags;
  const bool mapped = (word & kMapped) != 0;
  if (size < kSmallest || (!mapped && size > kLargestUnmapped)) return 0;
  return size - (mapped ? 2 * kWordSize : kWordSize);
}

// How many threads a barrier waits for: the third word of glibc's structure. musl has one less
// there, and a mark of those that processes share.
std::uint64_t Participants(std::uint64_t barrier, bool is_musl) {
  constexpr std::uint32_t kShared = 0x8000'0000;
  std::uint32_t count = 0;
  ReadGuest(barrier + 8, count);
  return is_musl ? (count & ~kShared) + 1 : count;
}

// Whether a lock is held for writing: in glibc's the thread number of the writer follows six words,
// in musl's the first one is as large as can be.
bool IsHeldForWriting(std::uint64_t rwlock, bool is_musl) {
  if (is_musl) {
    constexpr std::uint32_t kHeld = 0x7fff'ffff;
    std::uint32_t state = 0;
    ReadGuest(rwlock, state);
    return (state & kHeld) == kHeld;
  }
  std::uint32_t writer = 0;
  ReadGuest(rwlock + 24, writer);
  return writer != 0;
}

bool IsAcquired(std::uint64_t rax) {
  const auto result = static_cast<std::int32_t>(rax);
  return result == 0 || result == EOWNERDEAD;
}

constexpr std::uint8_t kFirstArguments[] = {kRdi, kRsi, kRdx, kRcx};

}  // namespace

void RuntimeCalls::BeforeRuntime(const StaticRuntime& runtime, const Instruction& instruction,
                                 const RegisterFile& registers, bool on_alternate_stack,
                                 RuntimeCallSink& sink) {
  if (const RuntimeEntry* const entry = runtime.EntryAt(registers.rip))
    Enter(runtime, *entry, registers, on_alternate_stack, sink);
  // The state of a pthread_once is about to change: who finds it done is ordered after what was
  // done up to now.
  for (const Call& call : calls_) {
    if (!call.counts || call.function->call != RuntimeCall::kOnce) continue;
    for (const MemoryAccess& access : Accesses(instruction, registers)) {
      if (!access.write || access.address != call.object()) continue;
      // Who begins may follow on an attempt of another thread that failed.
      sink.Event(TRAPLINE_HAPPENS_AFTER, call.object(), 0, call.return_address);
      sink.Event(TRAPLINE_HAPPENS_BEFORE, call.object(), 0, call.return_address);
    }
  }
}

void RuntimeCalls::Enter(const StaticRuntime& runtime, const RuntimeEntry& entry,
                         const RegisterFile& registers, bool on_alternate_stack,
                         RuntimeCallSink& sink) {
  Call call;
  call.function = entry.function;
  call.rsp = registers.gpr[kRsp] + entry.depth;
  if (!ReadGuest(call.rsp, call.return_address)) return;
  const auto is_this = [&](const Call& other) {
    return other.rsp == call.rsp && other.return_address == call.return_address;
  };
  // What lies below has been left; so has a call whose return address is no longer there.
  while (!calls_.empty() && !on_alternate_stack &&
         (calls_.back().rsp < call.rsp ||
          (calls_.back().rsp == call.rsp && !is_this(calls_.back())))) {
    Abandon(calls_.back(), sink);
    calls_.pop_back();
  }
  if (std::any_of(calls_.begin(), calls_.end(), [&](const Call& other) {
        return is_this(other) && other.function == call.function;
      }))
    return;  // a later one of its first accesses
  for (unsigned i = 0; i < 4; ++i) call.arguments[i] = registers.gpr[kFirstArguments[i]];
  call.counts = Counts(runtime, call);
  if (call.counts) {
    RegisterFile caller = registers;
    caller.rip = call.return_address - 1;
    caller.gpr[kRsp] = call.rsp + kWordSize;
    Begin(call, caller, runtime.is_musl(), sink);
  }
  calls_.push_back(call);
}

// Of functions that are done by others of them only the outermost counts.
bool RuntimeCalls::Counts(const StaticRuntime& runtime, const Call& call) const {
  const CodeOwner caller = runtime.OwnerOf(call.return_address - 1);
  const RuntimeFunction& function = *call.function;
  const auto same_sort = [&](const Call& other) {
    return other.counts && other.function->IsAllocation() == function.IsAllocation() &&
           other.function->IsAccess() == function.IsAccess();
  };
  // Another one jumped to it, and does its work by it.
  if (std::any_of(calls_.begin(), calls_.end(),
                  [&](const Call& other) { return other.rsp == call.rsp; }))
    return false;
  if (function.IsAllocation()) {
    // Blocks that the runtime allocates may become the program's (strdup, std::string).
    return caller == CodeOwner::kProgram || std::none_of(calls_.begin(), calls_.end(), same_sort);
  }
  if (function.IsAccess()) return caller == CodeOwner::kProgram;
  // What the C library locks is its own affair; the C++ library locks for the program.
  return caller != CodeOwner::kLibrary;
}

void RuntimeCalls::Begin(Call& call, const RegisterFile& caller, bool is_musl,
                         RuntimeCallSink& sink) {
  const RuntimeFunction& function = *call.function;
  const std::uint64_t ip = call.return_address, object = call.object();
  const auto argument = [&](std::uint8_t number) {
    return number < 4 ? call.arguments[number] : 0;
  };
  const std::uint64_t other = argument(function.other), size = argument(function.size);
  const auto reads = [&](std::uint64_t address, std::uint64_t bytes) {
    if (bytes != 0) sink.Access(TRAPLINE_READ, address, bytes, ip, caller);
  };
  const auto writes = [&](std::uint64_t address, std::uint64_t bytes) {
    if (bytes != 0) sink.Access(TRAPLINE_WRITE, address, bytes, ip, caller);
  };
  switch (function.call) {
    case RuntimeCall::kAcquire:
    case RuntimeCall::kAcquireAlways:
    case RuntimeCall::kAcquireShared:
    case RuntimeCall::kDestroy:
    case RuntimeCall::kDestroyAlways:
    case RuntimeCall::kOnce:
    case RuntimeCall::kSemaphoreWait:
    case RuntimeCall::kGuardAcquire:
      break;
    case RuntimeCall::kSetName:
      call.counts = object == caller.fs_base;
      break;
    case RuntimeCall::kRelease:
    case RuntimeCall::kConditionWait:
      sink.Event(TRAPLINE_RELEASE, object, function.detail, ip);
      break;
    case RuntimeCall::kReleaseRwlock:
      sink.Event(IsHeldForWriting(object, is_musl) ? TRAPLINE_RELEASE : TRAPLINE_RELEASE_SHARED,
                 object, function.detail, ip);
      break;
    case RuntimeCall::kBarrier:
      call.value = Participants(object, is_musl);
      sink.Event(TRAPLINE_BARRIER_ENTER, object, call.value, ip);
      break;
    case RuntimeCall::kPost:
      sink.Event(TRAPLINE_HAPPENS_BEFORE, object, 0, ip);
      break;
    case RuntimeCall::kGuardRelease:
      // The program's code looks at the first byte itself.
      sink.Event(TRAPLINE_HAPPENS_BEFORE, object, 0, ip);
      sink.Access(TRAPLINE_ATOMIC_WRITE, object, 1, ip, caller);
      break;
    case RuntimeCall::kJoin:
      if (const auto thread = sink.ThreadNumber(object)) {
        call.value = *thread;
      } else {
        call.counts = false;
      }
      break;
    case RuntimeCall::kAllocate:
      call.value = size;
      break;
    case RuntimeCall::kAllocateArray:
      call.value = call.arguments[0] * call.arguments[1];
      break;
    case RuntimeCall::kAllocateInto:
      call.value = call.arguments[2];
      break;
    case RuntimeCall::kReallocate:
    case RuntimeCall::kReallocateArray:
      if (object == 0) break;
      // It counts as freed even if it stays where it is: another thread may have it the moment it
      // is given back.
      call.value = is_musl ? 0 : UsableSize(object);
      sink.Event(TRAPLINE_FREE, object, call.value, ip);
      break;
    case RuntimeCall::kFree:
      if (object != 0) sink.Event(TRAPLINE_FREE, object, is_musl ? 0 : UsableSize(object), ip);
      break;
    case RuntimeCall::kCopy:
      reads(other, size);
      writes(object, size);
      break;
    case RuntimeCall::kFill:
      writes(object, size);
      break;
    case RuntimeCall::kCompare: {
      const std::uint64_t compared = Compared(object, other, size, false, false);
      reads(object, compared);
      reads(other, compared);
      break;
    }
    case RuntimeCall::kFindByte:
      reads(object, Through(object, static_cast<int>(other), false,
                            function.size == kNoArgument ? kNoLimit : size));
      break;
    case RuntimeCall::kFindLastByte:
      reads(object, size);
      break;
    case RuntimeCall::kCopyUntil: {
      const std::uint64_t copied = Through(other, static_cast<int>(call.arguments[2]), false, size);
      reads(other, copied);
      writes(object, copied);
      break;
    }
    case RuntimeCall::kFindBytes:
      reads(object, size);
      reads(other, call.arguments[3]);
      break;
    case RuntimeCall::kReadText:
      reads(object, Text(object));
      break;
    case RuntimeCall::kReadTextUpTo:
      reads(object, Text(object, size));
      break;
    case RuntimeCall::kCompareText: {
      const std::uint64_t compared =
          Compared(object, other, function.size == kNoArgument ? kNoLimit : size, true,
                   function.detail == kFoldsCase);
      reads(object, compared);
      reads(other, compared);
      break;
    }
    case RuntimeCall::kFindInText:
      reads(object, Through(object, static_cast<int>(other), true, kNoLimit));
      break;
    case RuntimeCall::kSpan:
      reads(object, Text(object));
      reads(other, Text(other));
      break;
    case RuntimeCall::kCopyText: {
      const std::uint64_t length = Text(other);
      reads(other, length);
      writes(object, length);
      break;
    }
    case RuntimeCall::kFillText:
      reads(other, Text(other, size));
      writes(object, size);
      break;
    case RuntimeCall::kAppendText:
    case RuntimeCall::kAppendTextUpTo: {
      const std::uint64_t before = Text(object);
      const std::uint64_t limit = function.call == RuntimeCall::kAppendText ? kNoLimit : size;
      const std::uint64_t looked_at = Text(other, limit);
      reads(object, before);
      reads(other, looked_at);
      // At the limit a terminator comes besides.
      unsigned char last = 0;
      if (looked_at != 0) ReadGuest(other + looked_at - 1, last);
      if (before != 0) writes(object + before - 1, looked_at + (last != 0 ? 1 : 0));
      break;
    }
  }
}

void RuntimeCalls::End(const Call& call, std::uint64_t rax, RuntimeCallSink& sink) {
  const RuntimeFunction& function = *call.function;
  const std::uint64_t ip = call.return_address, object = call.object();
  const bool succeeded = static_cast<std::int32_t>(rax) == 0;
  switch (function.call) {
    case RuntimeCall::kAcquire:
      if (IsAcquired(rax)) sink.Event(TRAPLINE_ACQUIRE, object, function.detail, ip);
      break;
    case RuntimeCall::kAcquireAlways:
    case RuntimeCall::kConditionWait:
      sink.Event(TRAPLINE_ACQUIRE, object, function.detail, ip);
      break;
    case RuntimeCall::kAcquireShared:
      if (IsAcquired(rax)) sink.Event(TRAPLINE_ACQUIRE_SHARED, object, function.detail, ip);
      break;
    case RuntimeCall::kDestroy:
      if (succeeded) sink.Event(TRAPLINE_SYNC_DESTROYED, object, 0, ip);
      break;
    case RuntimeCall::kDestroyAlways:
      sink.Event(TRAPLINE_SYNC_DESTROYED, object, 0, ip);
      break;
    case RuntimeCall::kBarrier:
      sink.Event(TRAPLINE_BARRIER_LEAVE, object, call.value, ip);
      break;
    case RuntimeCall::kOnce:
    case RuntimeCall::kGuardAcquire:  // also after an attempt of another thread that failed
      sink.Event(TRAPLINE_HAPPENS_AFTER, object, 0, ip);
      break;
    case RuntimeCall::kSemaphoreWait:
      if (succeeded) sink.Event(TRAPLINE_HAPPENS_AFTER, object, 0, ip);
      break;
    case RuntimeCall::kJoin:
      if (succeeded) sink.Event(TRAPLINE_JOIN, call.value, 0, ip);
      break;
    case RuntimeCall::kSetName:
      if (succeeded) sink.Event(TRAPLINE_THREAD_NAME, call.arguments[function.other], 0, ip);
      break;
    case RuntimeCall::kAllocate:
    case RuntimeCall::kAllocateArray:
      if (rax != 0) sink.Event(TRAPLINE_ALLOCATE, rax, call.value, ip);
      break;
    case RuntimeCall::kAllocateInto: {
      std::uint64_t block = 0;
      if (succeeded && ReadGuest(object, block) && block != 0)
        sink.Event(TRAPLINE_ALLOCATE, block, call.value, ip);
      break;
    }
    case RuntimeCall::kReallocate:
    case RuntimeCall::kReallocateArray: {
      const std::uint64_t size = function.call == RuntimeCall::kReallocate
                                     ? call.arguments[1]
                                     : call.arguments[1] * call.arguments[2];
      if (rax != 0) {
        sink.Event(TRAPLINE_ALLOCATE, rax, size, ip);
      } else if (object != 0 && size != 0) {
        sink.Event(TRAPLINE_ALLOCATE, object, call.value, ip);  // the old one is still there
      }
      break;
    }
    default:
      break;
  }
}

// The call was left in another way than by its return.
void RuntimeCalls::Abandon(const Call& call, RuntimeCallSink& sink) {
  // Who is cancelled while waiting holds the mutex again.
  if (call.counts && call.function->call == RuntimeCall::kConditionWait) End(call, 0, sink);
}

void RuntimeCalls::InProgram(std::uint64_t rsp, bool on_alternate_stack, RuntimeCallSink& sink) {
  if (on_alternate_stack) return;
  while (!calls_.empty() && calls_.back().rsp < rsp) {
    Abandon(calls_.back(), sink);
    calls_.pop_back();
  }
}

void RuntimeCalls::Arrived(const StaticRuntime& runtime, std::uint64_t rip, std::uint64_t rsp,
                           std::uint64_t rax, bool on_alternate_stack, RuntimeCallSink& sink) {
  while (!calls_.empty() && calls_.back().return_address == rip &&
         calls_.back().rsp + kWordSize == rsp) {
    const Call call = calls_.back();
    calls_.pop_back();
    if (call.counts) End(call, rax, sink);
  }
  if (!calls_.empty() && !runtime.IsRuntime(rip)) InProgram(rsp, on_alternate_stack, sink);
}

}  // namespace trapline
