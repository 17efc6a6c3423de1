// Relaxed stores by std::atomic_ref and to std::atomic<float>, whose operations lie one function
// deeper in libstdc++: a template's.
// RACE read-write global:by_reference a b
// RACE read-write global:by_float c d
// BUILD O0 O2 clang-O0 clang-O2
// MAY-MISS shared: each place runs once
// MAY-MISS write-shared: each place runs once
#include <atomic>
#include <thread>

#include "race.h"

int flag;
std::atomic<float> done;
int by_reference, by_float;
long seen;

int main() {
  std::thread receiver([] {
    while (std::atomic_ref<int>(flag).load(std::memory_order_acquire) == 0) usleep(1000);
    seen += by_reference;  // [a]
    while (done.load(std::memory_order_acquire) == 0) usleep(1000);
    seen += by_float;  // [c]
  });
  by_reference = 1;  // [b]
  std::atomic_ref<int>(flag).store(1, std::memory_order_relaxed);
  usleep(20000);
  by_float = 1;  // [d]
  done.store(1, std::memory_order_relaxed);
  receiver.join();
  return Done();
}
