// Two stores with the fence between them: only the second one publishes.
// CLEAN
#include "two_stages.h"

static void* Gives(void* argument) {
  value = 1;
  atomic_store_explicit(&ready, 1, memory_order_relaxed);
  atomic_thread_fence(memory_order_release);
  atomic_store_explicit(&ready, 2, memory_order_relaxed);
  return argument;
}

int main(void) { return RunStages(Gives); }
