/* What ThreadSanitizer's runtime brings and its tests call. Built as libtsan.so.0, whose code
 * trapline does not count: the barrier orders nothing, as its tests want it. The annotations do
 * nothing here; trapline's preloaded library comes before. */
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A barrier in one word: threads that it waits for, threads that are there, and rounds, whose
 * number may wrap: a thread that waits takes part in the next round, so that it cannot miss 4096.
 */
enum { kBits = 10, kMask = (1 << kBits) - 1, kRoundShift = 2 * kBits };

void __tsan_testonly_barrier_init(unsigned* barrier, unsigned count) {
  if (count == 0 || count > kMask) __builtin_trap();
  __atomic_store_n(barrier, count, __ATOMIC_RELEASE);
}

void __tsan_testonly_barrier_wait(unsigned* barrier) {
  unsigned before = __atomic_load_n(barrier, __ATOMIC_ACQUIRE);
  unsigned after;
  int last;
  do {
    const unsigned count = before & kMask;
    last = (before >> kBits & kMask) + 1 == count;
    after = last ? ((before >> kRoundShift) + 1) << kRoundShift | count : before + (1 << kBits);
  } while (
      !__atomic_compare_exchange_n(barrier, &before, after, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
  if (last) {
    syscall(SYS_futex, barrier, FUTEX_WAKE, INT_MAX, 0, 0, 0);
    return;
  }
  for (unsigned now = after; now >> kRoundShift == before >> kRoundShift;
       now = __atomic_load_n(barrier, __ATOMIC_ACQUIRE))
    syscall(SYS_futex, barrier, FUTEX_WAIT, now, 0, 0, 0);
}

unsigned long __tsan_testonly_shadow_stack_current_size(void) { return 0; }

/* Fibers are told apart by what their creation returns. */
static char fibers[1 << 16];
static unsigned fiber_count;

void* __tsan_get_current_fiber(void) {
  static __thread char own;
  return &own;
}
void* __tsan_create_fiber(unsigned flags) {
  return &fibers[__atomic_fetch_add(&fiber_count, 1, __ATOMIC_RELAXED) % sizeof fibers];
}

/* How often the thread has taken its lock; no test takes two. */
static __thread int depth;

void __tsan_java_mutex_lock(unsigned long mutex) { ++depth; }
void __tsan_java_mutex_unlock(unsigned long mutex) { --depth; }
void __tsan_java_mutex_lock_rec(unsigned long mutex, int count) { depth += count; }
int __tsan_java_mutex_unlock_rec(unsigned long mutex) {
  const int count = depth;
  depth = 0;
  return count;
}

#define NOTHING(name) \
  void name(void) {}
NOTHING(AnnotateBenignRaceSized)
NOTHING(AnnotateHappensAfter)
NOTHING(AnnotateHappensBefore)
NOTHING(AnnotateIgnoreReadsBegin)
NOTHING(AnnotateIgnoreReadsEnd)
NOTHING(AnnotateIgnoreSyncBegin)
NOTHING(AnnotateIgnoreSyncEnd)
NOTHING(AnnotateIgnoreWritesBegin)
NOTHING(AnnotateIgnoreWritesEnd)
NOTHING(AnnotateRWLockAcquired)
NOTHING(AnnotateRWLockCreate)
NOTHING(AnnotateRWLockCreateStatic)
NOTHING(AnnotateRWLockDestroy)
NOTHING(AnnotateRWLockReleased)
NOTHING(AnnotateThreadName)
NOTHING(WTFAnnotateBenignRaceSized)
NOTHING(__sanitizer_syscall_post_impl_close)
NOTHING(__sanitizer_syscall_post_impl_fork)
NOTHING(__sanitizer_syscall_post_impl_pipe)
NOTHING(__sanitizer_syscall_post_impl_read)
NOTHING(__sanitizer_syscall_post_impl_write)
NOTHING(__sanitizer_syscall_pre_impl_close)
NOTHING(__sanitizer_syscall_pre_impl_fork)
NOTHING(__sanitizer_syscall_pre_impl_pipe)
NOTHING(__sanitizer_syscall_pre_impl_read)
NOTHING(__sanitizer_syscall_pre_impl_write)
NOTHING(__tsan_acquire)
NOTHING(__tsan_destroy_fiber)
NOTHING(__tsan_java_acquire)
NOTHING(__tsan_java_alloc)
NOTHING(__tsan_java_finalize)
NOTHING(__tsan_java_free)
NOTHING(__tsan_java_init)
NOTHING(__tsan_java_move)
NOTHING(__tsan_java_mutex_read_lock)
NOTHING(__tsan_java_mutex_read_unlock)
NOTHING(__tsan_java_release)
NOTHING(__tsan_java_release_store)
NOTHING(__tsan_mutex_create)
NOTHING(__tsan_mutex_destroy)
NOTHING(__tsan_mutex_post_divert)
NOTHING(__tsan_mutex_post_lock)
NOTHING(__tsan_mutex_post_signal)
NOTHING(__tsan_mutex_post_unlock)
NOTHING(__tsan_mutex_pre_divert)
NOTHING(__tsan_mutex_pre_lock)
NOTHING(__tsan_mutex_pre_signal)
NOTHING(__tsan_release)
NOTHING(__tsan_set_fiber_name)
NOTHING(__tsan_switch_to_fiber)

int __tsan_java_fini(void) { return 0; }
int __tsan_mutex_pre_unlock(void* mutex, unsigned flags) { return 0; }
