// What is done between the store and the notification is not ordered.
// RACE write-write global:value a b
// MAY-MISS shared: each place runs once
// LIMIT O2-nodebug: who waits comes after all that the other thread has done meanwhile, as long as its store is not known for what it is
// LIMIT nodebug: the flag is stored by a plain mov, and nothing but debug info tells it from a plain variable's: the flag is reported besides
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<int> ready;
int value;

int main() {
  std::thread waiter([] {
    ready.wait(0, std::memory_order_acquire);
    value = 2;  // [a]
  });
  ready.store(1, std::memory_order_release);
  value = 1;  // [b]
  ready.notify_all();
  waiter.join();
  return Done();
}
