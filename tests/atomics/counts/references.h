// An object with a reference count, which two threads hold.
#include <atomic>

#include "race.h"
#include "run_threads.h"

struct Object {
  std::atomic<int> references{2};
  int value = 0;
};

// Both threads `drop` their references.
template <typename Drop>
int RunHolders(Drop drop) {
  auto* const object = new Object;
  RunThreads([=] { drop(object); }, [=] { drop(object); });
  return Done();
}
