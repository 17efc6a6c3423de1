// The same at two places, where optimising compilers make two stores of the one.
// CLEAN
#include "two_stages.h"

static inline void Publish(int stage) {
  atomic_store_explicit(&ready, stage, memory_order_relaxed);
  atomic_thread_fence(memory_order_release);
}

__attribute__((noinline)) static void Begin(void) {
  value = 1;
  Publish(1);
}

__attribute__((noinline)) static void End(int stage) { Publish(stage); }

static void* Gives(void* argument) {
  Begin();
  End(2);
  return argument;
}

int main(void) { return RunStages(Gives); }
