// An event count: who finds nothing waits for the next number, then looks again.
// CLEAN
#include <linux/futex.h>

#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<int> epoch;
static std::atomic<int> filled;
static int values[3];

static long Futex(int operation, int argument) {
  return syscall(SYS_futex, &epoch, operation | FUTEX_PRIVATE_FLAG, argument, nullptr, nullptr, 0);
}

int main() {
  std::thread taker([] {
    int sum = 0;
    for (int next = 0; next < 3; next++) {
      for (;;) {
        const int ticket = epoch.load(std::memory_order_acquire);
        if (filled.load(std::memory_order_acquire) > next) break;
        Futex(FUTEX_WAIT, ticket);
      }
      sum += values[next];
    }
    Check(sum == 6);
  });
  for (int i = 0; i < 3; i++) {
    values[i] = i + 1;
    filled.fetch_add(1, std::memory_order_release);
    epoch.fetch_add(1, std::memory_order_acq_rel);
    Futex(FUTEX_WAKE, 1 << 30);
  }
  taker.join();
  return Done();
}
