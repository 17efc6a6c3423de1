// A reference count whose last holder deletes: acquire and release.
// CLEAN
// TAGS fast
#include "references.h"

static void Drop(Object* object) {
  Use(object->value);
  if (object->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete object;
}

int main() { return RunHolders(Drop); }
