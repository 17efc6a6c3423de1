// A relaxed decrement does not order the other holder's accesses before the deletion.
// RACE read-write heap:8 a b
// MAY-MISS shared: each place runs once in a thread
// LIMIT nodebug: a relaxed decrement is the same locked instruction, which orders all on x86-64
// ALSO any b b
#include "references.h"

static void Drop(Object* object) {
  Use(object->value);                                                                  // [a]
  if (object->references.fetch_sub(1, std::memory_order_relaxed) == 1) delete object;  // [b]
  Use(1);  // delete is not called last, so that it returns here
}

int main() { return RunHolders(Drop); }
