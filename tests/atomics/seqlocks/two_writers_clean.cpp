// Writers take turns by turning an even number odd.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<unsigned> sequence;
static int writes;

static void Write() {
  for (;;) {
    unsigned before = sequence.load(std::memory_order_relaxed);
    if (before % 2 == 0 &&
        sequence.compare_exchange_weak(before, before + 1, std::memory_order_acquire)) {
      writes++;
      sequence.store(before + 2, std::memory_order_release);
      return;
    }
    usleep(100);
  }
}

int main() {
  std::thread first([] {
    for (int i = 0; i < 5; i++) Write();
  });
  for (int i = 0; i < 5; i++) Write();
  first.join();
  return writes == 10 ? Done() : 1;
}
