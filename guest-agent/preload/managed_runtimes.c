/* What language runtimes tell ThreadSanitizer of their threads and memory: its fiber interface
 * (tsan_interface.h) and its Java interface (tsan_interface_java.h).
 *
 * They are reached where a runtime leaves them undefined, or weak and found by symbol search. A
 * definition that follows this library is called too. */
#include "guest-agent/preload/runtime.h"

/* Calls the next definition, if there is one. */
#define NEXT(name, ...) \
  if (real.name) real.name(__VA_ARGS__)

#define REPORT(kind, object, size) Event(kind, (const volatile void*)(object), size, CALLER)

/* -- Fibers -- */

enum { kTsanSwitchWithoutOrder = 1 };

/* The calling thread's own handle, once it was asked for; and that of the fiber that it runs, null:
 * itself. */
static __thread void* own_fiber;
static __thread void* current_fiber;

WRAPPER void* __tsan_get_current_fiber(void) {
  Ready();
  if (current_fiber) return current_fiber;
  if (real.__tsan_get_current_fiber) {
    own_fiber = real.__tsan_get_current_fiber();
  } else if (!own_fiber) {
    own_fiber = (void*)(TRAPLINE_FIBER_OF_THREAD | (runtime.agent ? runtime.agent->thread() : 0));
  }
  return own_fiber;
}

WRAPPER void* __tsan_create_fiber(unsigned flags) {
  static uint64_t last;
  Ready();
  void* fiber;
  if (real.__tsan_create_fiber) {
    fiber = real.__tsan_create_fiber(flags);
  } else {
    /* No address, so none that the runtime itself names a fiber by. */
    const uint64_t kNotAnAddress = 1ull << 63;
    fiber = (void*)(kNotAnAddress | __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED));
  }
  REPORT(TRAPLINE_FIBER_CREATE, fiber, 0);
  return fiber;
}

WRAPPER void __tsan_destroy_fiber(void* fiber) {
  Ready();
  REPORT(TRAPLINE_FIBER_DESTROY, fiber, 0);
  NEXT(__tsan_destroy_fiber, fiber);
}

WRAPPER void __tsan_switch_to_fiber(void* fiber, unsigned flags) {
  Ready();
  int own = fiber == own_fiber;
  current_fiber = own ? NULL : fiber;
  /* How large the caller's frame is nobody says. */
  const uint64_t kFrameWords = 16;
  REPORT(TRAPLINE_FIBER_SWITCH, own ? NULL : fiber,
         CALLER_STACK << 16 | kFrameWords << 1 | (flags & kTsanSwitchWithoutOrder ? 0 : 1));
  NEXT(__tsan_switch_to_fiber, fiber, flags);
}

WRAPPER void __tsan_set_fiber_name(void* fiber, const char* name) {
  Ready();
  uint64_t text[2] = {0, 0};
  for (unsigned i = 0; i < 15 && name[i]; ++i)
    text[i / 8] |= (uint64_t)(unsigned char)name[i] << i % 8 * 8;
  Event(TRAPLINE_FIBER_NAME, fiber, text[0], text[1]);
  NEXT(__tsan_set_fiber_name, fiber, name);
}

/* -- A managed heap -- */

WRAPPER void __tsan_java_init(unsigned long heap, unsigned long size) {
  Ready();
  NEXT(__tsan_java_init, heap, size);
  REPORT(TRAPLINE_CLEAR_HISTORY, heap, size);
}

WRAPPER int __tsan_java_fini(void) {
  Ready();
  return real.__tsan_java_fini ? real.__tsan_java_fini() : 0;
}

WRAPPER void __tsan_java_alloc(unsigned long block, unsigned long size) {
  Ready();
  NEXT(__tsan_java_alloc, block, size);
  REPORT(TRAPLINE_ALLOCATE, block, size);
}

/* Several objects at once, perhaps: a range rather than a block. */
WRAPPER void __tsan_java_free(unsigned long block, unsigned long size) {
  Ready();
  REPORT(TRAPLINE_CLEAR_HISTORY, block, size);
  NEXT(__tsan_java_free, block, size);
}

WRAPPER void __tsan_java_move(unsigned long from, unsigned long to, unsigned long size) {
  Ready();
  Request(TRAPLINE_COPY_HISTORY, to, size, from);
  /* What the object leaves behind is fresh, but for what it now covers. */
  unsigned long begin = from;
  unsigned long end = from + size;
  if (to <= begin && begin < to + size) begin = to + size;
  if (from < to && to < end) end = to;
  if (begin < end) REPORT(TRAPLINE_CLEAR_HISTORY, begin, end - begin);
  NEXT(__tsan_java_move, from, to, size);
}

WRAPPER void __tsan_java_finalize(void) {
  Ready();
  NEXT(__tsan_java_finalize);
  Request(TRAPLINE_AFTER_ALL, 0, 0, 0);
}

/* -- Its locks and other synchronisation. A lock that is taken again by its owner is reported each
 * time. -- */

#define AFTER(name, kind, size)             \
  WRAPPER void name(unsigned long object) { \
    Ready();                                \
    NEXT(name, object);                     \
    REPORT(kind, object, size);             \
  }
#define BEFORE(name, kind, size)            \
  WRAPPER void name(unsigned long object) { \
    Ready();                                \
    REPORT(kind, object, size);             \
    NEXT(name, object);                     \
  }

AFTER(__tsan_java_mutex_lock, TRAPLINE_ACQUIRE, TRAPLINE_LOCK_ANNOTATED)
BEFORE(__tsan_java_mutex_unlock, TRAPLINE_RELEASE, TRAPLINE_LOCK_ANNOTATED)
AFTER(__tsan_java_mutex_read_lock, TRAPLINE_ACQUIRE_SHARED, TRAPLINE_LOCK_ANNOTATED)
BEFORE(__tsan_java_mutex_read_unlock, TRAPLINE_RELEASE_SHARED, TRAPLINE_LOCK_ANNOTATED)
AFTER(__tsan_java_acquire, TRAPLINE_HAPPENS_AFTER, 0)
BEFORE(__tsan_java_release, TRAPLINE_HAPPENS_BEFORE, 0)
BEFORE(__tsan_java_release_store, TRAPLINE_HAPPENS_BEFORE, 0)

WRAPPER void __tsan_java_mutex_lock_rec(unsigned long mutex, int count) {
  Ready();
  NEXT(__tsan_java_mutex_lock_rec, mutex, count);
  for (int i = 0; i < count; ++i) REPORT(TRAPLINE_ACQUIRE, mutex, TRAPLINE_LOCK_ANNOTATED);
}

/* How often the lock was taken nobody counts here: given back once, it is taken once again. */
WRAPPER int __tsan_java_mutex_unlock_rec(unsigned long mutex) {
  Ready();
  REPORT(TRAPLINE_RELEASE, mutex, TRAPLINE_LOCK_ANNOTATED);
  return real.__tsan_java_mutex_unlock_rec ? real.__tsan_java_mutex_unlock_rec(mutex) : 1;
}
