// A ring hands items over: they are not used after they were pushed.
// CLEAN
// LIMIT nodebug: on x86-64 a release store is a plain mov
#include "ring_cached_index.h"

int main() {
  return RunRing([](int* item) { Push(item); }, [](int* item) { *item += 1; });
}
