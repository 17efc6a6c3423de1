// GLib's once, by the names of its functions: what it stores before it says that it is done is read
// by whoever finds it so.
// CLEAN
// BUILD O0 O2 gcc-O2-nodebug clang-O2-nodebug
#include "race.h"

enum { kNotDone, kDone = 2, kThreads = 4 };

struct Once {
  int status;
  void* result;
};

static struct Once once;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int value;

static void* MakeValue(void) {
  value = 42;
  return &value;
}

// As in GLib, but for threads that come while the function runs: they wait for the mutex.
__attribute__((noinline)) void* g_once_impl(struct Once* of, void* (*function)(void));
void* g_once_impl(struct Once* of, void* (*function)(void)) {
  pthread_mutex_lock(&mutex);
  if (of->status != kDone) {
    of->result = function();
    __atomic_store_n(&of->status, kDone, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&mutex);
  return of->result;
}

static void* Uses(void* argument) {
  for (int i = 0; i < 1000; i++) {
    const int* const result = __atomic_load_n(&once.status, __ATOMIC_ACQUIRE) == kDone
                                  ? once.result
                                  : g_once_impl(&once, MakeValue);
    Use(*result);
  }
  return argument;
}

int main(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; i++) threads[i] = Start(Uses, NULL);
  for (int i = 0; i < kThreads; i++) Join(threads[i]);
  return Done();
}
