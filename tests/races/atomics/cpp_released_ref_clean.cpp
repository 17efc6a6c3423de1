// Stores by std::atomic_ref and to std::atomic<float>, whose operations lie one function
// deeper in libstdc++: a template's.
// CLEAN
// BUILD O0 O2 clang-O0 clang-O2
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
    seen += by_reference;
    while (done.load(std::memory_order_acquire) == 0) usleep(1000);
    seen += by_float;
  });
  by_reference = 1;
  std::atomic_ref<int>(flag).store(1, std::memory_order_release);
  usleep(20000);
  by_float = 1;
  done.store(1, std::memory_order_release);
  receiver.join();
  return Done();
}
