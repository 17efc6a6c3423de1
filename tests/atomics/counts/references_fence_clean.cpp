// The same with a release decrement and an acquire fence for the last holder.
// CLEAN
#include "references.h"

static void Drop(Object* object) {
  Use(object->value);
  if (object->references.fetch_sub(1, std::memory_order_release) == 1) {
    std::atomic_thread_fence(std::memory_order_acquire);
    delete object;
  }
}

int main() { return RunHolders(Drop); }
