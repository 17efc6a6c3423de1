// The fence comes after the store, but at first there is only the fence.
// CLEAN
#include "two_stages.h"

static void Publish(int stage) {
  if (stage == 2) atomic_store_explicit(&ready, stage, memory_order_relaxed);
  atomic_thread_fence(memory_order_release);
}

static void* Gives(void* argument) {
  value = 1;
  Publish(1);
  Publish(2);
  return argument;
}

int main(void) { return RunStages(Gives); }
