// The fence comes after the store, and before that of the next turn.
// CLEAN
#include "two_stages.h"

static void* Gives(void* argument) {
  value = 1;
  for (int stage = 1; stage <= 2; stage++) {
    atomic_store_explicit(&ready, stage, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
  }
  return argument;
}

int main(void) { return RunStages(Gives); }
