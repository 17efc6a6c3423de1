// A decrement that acquires and does not release: the last holder knows nothing of the others.
// RACE read-write heap:8 a b
// ALSO any b b
// MAY-MISS shared: each place runs once in a thread
// LIMIT nodebug: the decrement is the same locked instruction, which orders all on x86-64
#include "references.h"

static void Drop(Object* object) {
  Use(object->value);                                                                  // [a]
  if (object->references.fetch_sub(1, std::memory_order_acquire) == 1) delete object;  // [b]
  Use(1);  // delete is not called last, so that it returns here
}

int main() { return RunHolders(Drop); }
