#include "hypervisor/runtime_functions.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include "guest-agent/events.h"

namespace trapline {
namespace {

using enum RuntimeCall;

constexpr std::uint8_t kNone = kNoArgument;
constexpr std::uint8_t kMutex = TRAPLINE_LOCK_MUTEX;
constexpr std::uint8_t kRwlock = TRAPLINE_LOCK_RWLOCK;
constexpr std::uint8_t kSpinlock = TRAPLINE_LOCK_SPINLOCK;

// The same functions as the preload library has wrappers for, in the same sense.
constexpr RuntimeFunction kFunctions[] = {
    {"pthread_mutex_lock", kAcquire, 1, 0, kNone, kNone, kMutex},
    {"pthread_mutex_trylock", kAcquire, 1, 0, kNone, kNone, kMutex},
    {"pthread_mutex_timedlock", kAcquire, 1, 0, kNone, kNone, kMutex},
    {"pthread_mutex_clocklock", kAcquire, 1, 0, kNone, kNone, kMutex},
    {"pthread_mutex_unlock", kRelease, 1, 0, kNone, kNone, kMutex},
    {"pthread_mutex_destroy", kDestroy, 1},
    {"mtx_lock", kAcquire, 1, 0, kNone, kNone, kMutex},
    {"mtx_trylock", kAcquire, 1, 0, kNone, kNone, kMutex},
    {"mtx_timedlock", kAcquire, 1, 0, kNone, kNone, kMutex},
    {"mtx_unlock", kRelease, 1, 0, kNone, kNone, kMutex},
    {"mtx_destroy", kDestroyAlways, 1},
    {"flockfile", kAcquireAlways, 1, 0, kNone, kNone, kMutex},
    {"ftrylockfile", kAcquire, 1, 0, kNone, kNone, kMutex},
    {"funlockfile", kRelease, 1, 0, kNone, kNone, kMutex},
    {"pthread_rwlock_rdlock", kAcquireShared, 1, 0, kNone, kNone, kRwlock},
    {"pthread_rwlock_tryrdlock", kAcquireShared, 1, 0, kNone, kNone, kRwlock},
    {"pthread_rwlock_timedrdlock", kAcquireShared, 1, 0, kNone, kNone, kRwlock},
    {"pthread_rwlock_clockrdlock", kAcquireShared, 1, 0, kNone, kNone, kRwlock},
    {"pthread_rwlock_wrlock", kAcquire, 1, 0, kNone, kNone, kRwlock},
    {"pthread_rwlock_trywrlock", kAcquire, 1, 0, kNone, kNone, kRwlock},
    {"pthread_rwlock_timedwrlock", kAcquire, 1, 0, kNone, kNone, kRwlock},
    {"pthread_rwlock_clockwrlock", kAcquire, 1, 0, kNone, kNone, kRwlock},
    {"pthread_rwlock_unlock", kReleaseRwlock, 1, 0, kNone, kNone, kRwlock},
    {"pthread_rwlock_destroy", kDestroy, 1},
    {"pthread_spin_lock", kAcquire, 1, 0, kNone, kNone, kSpinlock},
    {"pthread_spin_trylock", kAcquire, 1, 0, kNone, kNone, kSpinlock},
    {"pthread_spin_unlock", kRelease, 1, 0, kNone, kNone, kSpinlock},
    {"pthread_spin_destroy", kDestroy, 1},
    {"pthread_barrier_wait", kBarrier, 1},
    {"pthread_barrier_destroy", kDestroy, 1},
    {"pthread_cond_wait", kConditionWait, 2, 1, kNone, kNone, kMutex},
    {"pthread_cond_timedwait", kConditionWait, 2, 1, kNone, kNone, kMutex},
    {"pthread_cond_clockwait", kConditionWait, 2, 1, kNone, kNone, kMutex},
    {"cnd_wait", kConditionWait, 2, 1, kNone, kNone, kMutex},
    {"cnd_timedwait", kConditionWait, 2, 1, kNone, kNone, kMutex},
    {"pthread_once", kOnce, 1},
    {"call_once", kOnce, 1},
    {"sem_post", kPost, 1},
    {"sem_wait", kSemaphoreWait, 1},
    {"sem_trywait", kSemaphoreWait, 1},
    {"sem_timedwait", kSemaphoreWait, 1},
    {"sem_clockwait", kSemaphoreWait, 1},
    {"sem_destroy", kDestroy, 1},
    {"__cxa_guard_acquire", kGuardAcquire, 1},
    {"__cxa_guard_release", kGuardRelease, 1},
    {"__cxa_guard_abort", kPost, 1},
    {"pthread_join", kJoin, 1},
    {"pthread_tryjoin_np", kJoin, 1},
    {"pthread_timedjoin_np", kJoin, 1},
    {"pthread_clockjoin_np", kJoin, 1},
    {"thrd_join", kJoin, 1},
    {"pthread_setname_np", kSetName, 2, 0, 1},

    {"malloc", kAllocate, 1, 0, kNone, 0},
    {"valloc", kAllocate, 1, 0, kNone, 0},
    {"pvalloc", kAllocate, 1, 0, kNone, 0},
    {"memalign", kAllocate, 2, 0, kNone, 1},
    {"aligned_alloc", kAllocate, 2, 0, kNone, 1},
    {"calloc", kAllocateArray, 2},
    {"realloc", kReallocate, 2, 0, kNone, 1},
    {"reallocarray", kReallocateArray, 3},
    {"posix_memalign", kAllocateInto, 3, 0, kNone, 2},
    {"free", kFree, 1},
    {"cfree", kFree, 1},
    {"_Znwm", kAllocate, 1, 0, kNone, 0},
    {"_Znam", kAllocate, 1, 0, kNone, 0},
    {"_ZnwmRKSt9nothrow_t", kAllocate, 1, 0, kNone, 0},
    {"_ZnamRKSt9nothrow_t", kAllocate, 1, 0, kNone, 0},
    {"_ZnwmSt11align_val_t", kAllocate, 1, 0, kNone, 0},
    {"_ZnamSt11align_val_t", kAllocate, 1, 0, kNone, 0},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t", kAllocate, 1, 0, kNone, 0},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", kAllocate, 1, 0, kNone, 0},
    {"_ZdlPv", kFree, 1},
    {"_ZdaPv", kFree, 1},
    {"_ZdlPvm", kFree, 1},
    {"_ZdaPvm", kFree, 1},
    {"_ZdlPvRKSt9nothrow_t", kFree, 1},
    {"_ZdaPvRKSt9nothrow_t", kFree, 1},
    {"_ZdlPvSt11align_val_t", kFree, 1},
    {"_ZdaPvSt11align_val_t", kFree, 1},
    {"_ZdlPvmSt11align_val_t", kFree, 1},
    {"_ZdaPvmSt11align_val_t", kFree, 1},
    {"_ZdlPvSt11align_val_tRKSt9nothrow_t", kFree, 1},
    {"_ZdaPvSt11align_val_tRKSt9nothrow_t", kFree, 1},

    {"memcpy", kCopy, 3, 0, 1, 2},
    {"memmove", kCopy, 3, 0, 1, 2},
    {"mempcpy", kCopy, 3, 0, 1, 2},
    {"bcopy", kCopy, 3, 1, 0, 2},
    {"__memcpy_chk", kCopy, 3, 0, 1, 2},
    {"__memmove_chk", kCopy, 3, 0, 1, 2},
    {"__mempcpy_chk", kCopy, 3, 0, 1, 2},
    {"memset", kFill, 3, 0, kNone, 2},
    {"__memset_chk", kFill, 3, 0, kNone, 2},
    {"explicit_bzero", kFill, 2, 0, kNone, 1},
    {"__explicit_bzero_chk", kFill, 2, 0, kNone, 1},
    {"bzero", kFill, 2, 0, kNone, 1},
    {"memcmp", kCompare, 3, 0, 1, 2},
    {"bcmp", kCompare, 3, 0, 1, 2},
    {"memcmpeq", kCompare, 3, 0, 1, 2},
    {"__memcmpeq", kCompare, 3, 0, 1, 2},
    {"memchr", kFindByte, 3, 0, 1, 2},
    {"rawmemchr", kFindByte, 2, 0, 1},
    {"memrchr", kFindLastByte, 3, 0, 1, 2},
    {"memccpy", kCopyUntil, 4, 0, 1, 3},
    {"memmem", kFindBytes, 4, 0, 2, 1},
    {"strlen", kReadText, 1},
    {"strnlen", kReadTextUpTo, 2, 0, kNone, 1},
    {"strcmp", kCompareText, 2, 0, 1},
    {"strncmp", kCompareText, 3, 0, 1, 2},
    {"strcasecmp", kCompareText, 2, 0, 1, kNone, kFoldsCase},
    {"strcasecmp_l", kCompareText, 2, 0, 1, kNone, kFoldsCase},
    {"strncasecmp", kCompareText, 3, 0, 1, 2, kFoldsCase},
    {"strncasecmp_l", kCompareText, 3, 0, 1, 2, kFoldsCase},
    {"strcoll", kSpan, 2, 0, 1},
    {"strchr", kFindInText, 2, 0, 1},
    {"index", kFindInText, 2, 0, 1},
    {"strchrnul", kFindInText, 2, 0, 1},
    {"strrchr", kReadText, 1},
    {"rindex", kReadText, 1},
    {"strspn", kSpan, 2, 0, 1},
    {"strcspn", kSpan, 2, 0, 1},
    {"strpbrk", kSpan, 2, 0, 1},
    {"strstr", kSpan, 2, 0, 1},
    {"strcasestr", kSpan, 2, 0, 1},
    {"strcpy", kCopyText, 2, 0, 1},
    {"stpcpy", kCopyText, 2, 0, 1},
    {"__strcpy_chk", kCopyText, 2, 0, 1},
    {"__stpcpy_chk", kCopyText, 2, 0, 1},
    {"strncpy", kFillText, 3, 0, 1, 2},
    {"stpncpy", kFillText, 3, 0, 1, 2},
    {"__strncpy_chk", kFillText, 3, 0, 1, 2},
    {"__stpncpy_chk", kFillText, 3, 0, 1, 2},
    {"strcat", kAppendText, 2, 0, 1},
    {"__strcat_chk", kAppendText, 2, 0, 1},
    {"strncat", kAppendTextUpTo, 3, 0, 1, 2},
    {"__strncat_chk", kAppendTextUpTo, 3, 0, 1, 2},
    {"strdup", kReadText, 1},
    {"strndup", kReadTextUpTo, 2, 0, kNone, 1},
    {"puts", kReadText, 1},
    {"fputs", kReadText, 1},
};

const RuntimeFunction* FindExactly(std::string_view name) {
  static const auto* const kByName = [] {
    auto* by_name = new std::unordered_map<std::string_view, const RuntimeFunction*>;
    for (const RuntimeFunction& function : kFunctions) by_name->emplace(function.name, &function);
    return by_name;
  }();
  const auto found = kByName->find(name);
  return found != kByName->end() ? found->second : nullptr;
}

// "memcpy" of "__memcpy_avx_unaligned_erms", "memcpy_chk" of "__memcpy_chk_evex_unaligned".
std::string_view WithoutVariant(std::string_view name) {
  constexpr std::array<std::string_view, 6> kVariants = {"_sse",  "_ssse", "_avx",
                                                         "_evex", "_erms", "_generic"};
  std::size_t end = std::string_view::npos;
  for (const std::string_view variant : kVariants) end = std::min(end, name.find(variant));
  return end == std::string_view::npos ? std::string_view() : name.substr(0, end);
}

}  // namespace

const RuntimeFunction* FindRuntimeFunction(std::string_view name) {
  if (const RuntimeFunction* const found = FindExactly(name)) return found;
  if (!name.starts_with("__")) return nullptr;
  // libc's own names for what the program knows without underscores, and their variants.
  std::string_view plain = name.substr(2);
  if (const std::string_view base = WithoutVariant(plain); !base.empty()) plain = base;
  if (plain.starts_with("mem") || plain.starts_with("str") || plain.starts_with("stp") ||
      plain.starts_with("bzero")) {
    if (plain.ends_with("_chk")) return FindExactly("__" + std::string(plain));
    return FindExactly(plain);
  }
  if (plain.starts_with("pthread_") || plain.starts_with("libc_")) {
    if (plain.starts_with("libc_")) plain.remove_prefix(5);
    return FindExactly(plain);
  }
  return nullptr;
}

}  // namespace trapline
