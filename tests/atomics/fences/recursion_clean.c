// The inner call runs its fence before the outer one its store.
// CLEAN
#include "two_stages.h"

static void Publish(int stage);

static int Before(int stage) {
  if (stage > 1) Publish(stage - 1);
  return stage;
}

static void Publish(int stage) {
  atomic_store_explicit(&ready, Before(stage), memory_order_relaxed);
  atomic_thread_fence(memory_order_release);
}

static void* Gives(void* argument) {
  value = 1;
  Publish(2);
  return argument;
}

int main(void) { return RunStages(Gives); }
