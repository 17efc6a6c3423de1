// The fence comes after the store, and before that of the next call, which publishes what was there
// before.
// CLEAN
#include "two_stages.h"

static void Publish(int stage) {
  atomic_store_explicit(&ready, stage, memory_order_relaxed);
  atomic_thread_fence(memory_order_release);
}

static void* Gives(void* argument) {
  value = 1;
  Publish(1);
  Publish(2);
  return argument;
}

int main(void) { return RunStages(Gives); }
