// A holder uses the object after it has dropped its reference.
// RACE read-write heap:8 a b
// TAGS fast
// MAY-MISS shared: each place runs once
#include <atomic>
#include <thread>

#include "race.h"

struct Object {
  std::atomic<int> references{2};
  int value = 0;
};

static std::atomic<int> holder_id;

int main() {
  auto* const object = new Object;
  std::thread holder([=] {
    holder_id.store(ThreadId());
    object->references.fetch_sub(1, std::memory_order_acq_rel);
    Use(object->value);  // [a]
  });
  while (holder_id.load() == 0) usleep(100);
  WaitUntilEnded(holder_id.load());
  if (object->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    delete object;  // [b]
  }
  holder.join();
  return Done();
}
