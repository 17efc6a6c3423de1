// Readers say when they are inside; the writer swaps the pointer and waits for a moment when all
// are out.
// CLEAN
#include <atomic>
#include <thread>

#include "race.h"

static std::atomic<int*> shared{nullptr};
static std::atomic<int> inside;

int main() {
  shared.store(new int(1));
  std::thread reader([] {
    for (int i = 0; i < 5; i++) {
      inside.fetch_add(1);
      Use(*shared.load());
      inside.fetch_sub(1);
    }
  });
  for (int i = 2; i < 4; i++) {
    int* const old = shared.exchange(new int(i));
    while (inside.load() != 0) usleep(100);
    delete old;
  }
  reader.join();
  delete shared.load();
  return Done();
}
