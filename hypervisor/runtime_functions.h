// Functions of the C and C++ runtimes whose calls say something about the program's
// synchronisation, its allocations or its own accesses, by name.
#pragma once

#include <cstdint>
#include <string_view>

namespace trapline {

// What a call means. Arguments are numbered as the psABI passes them: 0 is rdi.
enum class RuntimeCall : std::uint8_t {
  // Synchronisation; `object` is the argument that names it.
  kAcquire,        // lock taken if the result is 0 or EOWNERDEAD
  kAcquireAlways,  // no result
  kAcquireShared,
  kRelease,
  kReleaseRwlock,  // which side, the lock itself tells
  kDestroy,        // if the result is 0
  kDestroyAlways,
  kBarrier,
  kConditionWait,  // argument 1: the mutex
  kOnce,
  kPost,
  kSemaphoreWait,
  kGuardAcquire,
  kGuardRelease,
  kJoin,
  kSetName,
  // Allocation; `size` is the argument that tells how many bytes.
  kAllocate,
  kAllocateArray,  // argument 0 times argument 1
  kReallocate,
  kReallocateArray,
  kAllocateInto,  // posix_memalign
  kFree,
  // Accesses in the name of the caller.
  kCopy,          // argument `object` is written, `other` read, `size` bytes
  kFill,          // `object` is written
  kCompare,       // `object` and `other` are read up to the first difference
  kFindByte,      // memchr
  kFindLastByte,  // memrchr
  kCopyUntil,     // memccpy
  kFindBytes,     // memmem
  kReadText,      // the whole string `object`
  kReadTextUpTo,  // at most `size` bytes of it
  kCompareText,   // `other` too; kTextFolded, kTextLimited
  kFindInText,    // strchr: through the character
  kSpan,          // strspn, strcspn, strpbrk: all of `object`, all of `other`
  kCopyText,      // `other` to `object`
  kFillText,      // strncpy
  kAppendText,
  kAppendTextUpTo,
};

inline constexpr std::uint8_t kNoArgument = 0xff;
inline constexpr std::uint8_t kFoldsCase = 1;  // RuntimeFunction::detail of kCompareText

struct RuntimeFunction {
  std::string_view name;
  RuntimeCall call;
  std::uint8_t arguments;  // how many of them are looked at
  std::uint8_t object = 0;
  std::uint8_t other = kNoArgument;
  std::uint8_t size = kNoArgument;
  std::uint8_t detail = 0;  // enum trapline_lock_kind, or kFoldsCase

  bool IsAllocation() const { return call >= RuntimeCall::kAllocate && call <= RuntimeCall::kFree; }
  bool IsAccess() const { return call >= RuntimeCall::kCopy; }
};

// The function of that name: also "__memcpy_avx_unaligned_erms" and the like, the variants an
// indirect function chooses from. Null: no such function. The answer lives for ever.
const RuntimeFunction* FindRuntimeFunction(std::string_view name);

}  // namespace trapline
