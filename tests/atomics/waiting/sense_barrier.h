// A barrier by sense reversal.
#include <atomic>

#include "race.h"
#include "run_threads.h"

static std::atomic<int> arrived;
static std::atomic<bool> sense;

static void Meet(bool& own) {
  own = !own;
  if (arrived.fetch_add(1, std::memory_order_acq_rel) == 1) {
    arrived.store(0, std::memory_order_relaxed);
    sense.store(own, std::memory_order_release);
  } else {
    while (sense.load(std::memory_order_acquire) != own) usleep(100);
  }
}
